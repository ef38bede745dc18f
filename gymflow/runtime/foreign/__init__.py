"""Harnesses that are command lines of others, behind one worker protocol."""

from gymflow.runtime.foreign.harness import ForeignHarness
from gymflow.runtime.foreign.installing import Npm
from gymflow.runtime.foreign.protocol import Event, Job, Seen, Visit

__all__ = ["Event", "ForeignHarness", "Job", "Npm", "Seen", "Visit"]
