"""What the evidence of a run says: health, diagnosis, comparison, decision."""
