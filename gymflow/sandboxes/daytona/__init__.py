"""`daytona`: sandboxes of a Daytona account or of one's own Daytona, through its SDK (`pip install 'gymflow[daytona]'`)."""

from gymflow.sandboxes.daytona.provider import DaytonaProvider

__all__ = ["DaytonaProvider"]
