"""Where the engine calls a plugin's code: whatever that code raises is its own failure and never ends the run."""

import asyncio


def own_doing(error: BaseException) -> bool:
    """Whether an exception is the plugin's: any `Exception`, a `SystemExit`, or a cancellation that nobody asked of this task."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, Exception | SystemExit)
