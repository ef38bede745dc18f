"""A model reads trajectories and says why they did not pass; what the store does not bear out is dropped and counted.

Each rollout is read in a call of its own, and what is said there may speak of that rollout alone: a trajectory that tells its reader
what to say reaches no other. A model's labels stand beside those of the rules; they change no number, no rank and no verdict.
"""

from gymflow.analysis.diagnose.reading.reading import READINGS, Reader, last_readings, read_rollouts

__all__ = ["READINGS", "Reader", "last_readings", "read_rollouts"]
