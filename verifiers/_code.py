"""The program in an answer.

>>> fenced("Here:\\n```python\\nprint(1)\\n```\\nDone.", ("python", "py"))
'print(1)'
"""

import ast
import re
import textwrap
from collections.abc import Sequence

_BLOCK = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)

PYTHON = ("python", "python3", "py")


def fenced(text: str, languages: Sequence[str], *, defining: str | None = None) -> str | None:
    """The last code block in one of the languages, else the last that names none; None where there is no block.

    `defining`: a block that defines this name is preferred, since an example of its use often follows the solution.
    """
    found = [(match[2].lower(), textwrap.dedent(match[3])) for match in _BLOCK.finditer(text)]
    named = [code for language, code in found if language in languages]
    candidates = named or [code for language, code in found if not language]
    if not candidates:
        return None
    if defining is not None:
        candidates = [code for code in candidates if defines(code, defining)] or candidates
    return candidates[-1].strip("\n")


def defines(code: str, name: str) -> bool:
    """Whether Python code defines a function, class or variable of this name at its top level."""
    return re.search(rf"^(?:async\s+def|def|class)\s+{re.escape(name)}\b|^{re.escape(name)}\s*(?::[^=\n]*)?=", code, re.MULTILINE) is not None  # fmt: skip


def is_python(code: str) -> bool:
    """Whether it compiles."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def solution(text: str, *, prompt: str = "", entry_point: str | None = None) -> str:
    """The Python program of an answer: its code block, else the whole text; a continuation is put behind the prompt."""
    code = fenced(text, PYTHON, defining=entry_point)
    if code is None:
        code = text
    if prompt and entry_point and not defines(code, entry_point):
        return prompt.rstrip("\n") + "\n" + code if code[:1] in (" ", "\t") else f"{prompt.rstrip()}\n{textwrap.indent(code, '    ')}"  # fmt: skip
    if prompt and entry_point and is_python(code):
        # Imports and helpers that the task gives are there also for an answer that repeats only the function.
        return f"{_head(prompt, entry_point)}\n{code}"
    return code


def _head(prompt: str, entry_point: str) -> str:
    """What a prompt has before the function that it asks for."""
    found = re.search(rf"^(?:@.*\n)*(?:async\s+def|def|class)\s+{re.escape(entry_point)}\b", prompt, re.MULTILINE)
    return prompt[: found.start()] if found and is_python(prompt[: found.start()]) else ""
