r"""Regular expressions that a dataset brings, run on model text. Runs in a worker process: such a search may take for ever.

>>> last_match({"pattern": r"choice:\s*([a-z])", "text": "Choice: A. Final choice: B"})
'B'
"""

import re


def last_match(job: dict[str, str]) -> str | None:
    """`{"pattern", "text"}` -> group 1 (or all) of the last match; case is ignored."""
    found = list(re.finditer(job["pattern"], job["text"], re.IGNORECASE))
    if not found:
        return None
    return found[-1][1 if found[-1].re.groups else 0]


def full_match(job: dict[str, str | bool]) -> bool:
    """`{"pattern", "text", "ignore_case"}` -> whether the pattern matches the whole text."""
    flags = re.DOTALL | (re.IGNORECASE if job["ignore_case"] else 0)
    return re.fullmatch(str(job["pattern"]), str(job["text"]), flags) is not None


def check(pattern: str) -> str:
    """The pattern itself; ValueError where it is none."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern
