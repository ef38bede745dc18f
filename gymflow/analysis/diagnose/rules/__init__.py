"""One rule a file. The first comment says what it finds, `rank` which rule wins where several speak of one rollout (the lowest)."""
