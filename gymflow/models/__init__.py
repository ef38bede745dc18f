"""The model gateway: every model call of every rollout passes through here (DESIGN, section 8)."""
