"""The texts of a task folder. Whoever made one may have put a link in it: what lies outside of the folder is never read."""

import os
from pathlib import Path

from gymflow.errors import InputError


def texts(folder: Path, root: Path) -> dict[str, str]:
    """Every file below a folder by relative path; links may lead to files in `root`. Raises InputError."""
    found = {}
    for top, folders, names in os.walk(folder):
        for name in folders:
            if (linked := Path(top, name)).is_symlink():
                raise InputError(f"{linked}: a link to a folder; put a copy there")
        for name in names:
            file = Path(top, name)
            found[file.relative_to(folder).as_posix()] = text(file, root)
    return dict(sorted(found.items()))


def text(file: Path, root: Path) -> str:
    """A file's content. Raises InputError where it lies outside of `root`, cannot be read or is not UTF-8."""
    if not file.resolve().is_relative_to(root.resolve()):
        raise InputError(f"{file}: leads out of {root}; a task holds its own files only")
    if file.exists() and not file.is_file():
        raise InputError(f"{file}: not a file")
    try:
        return file.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not a text file; a task's files have to be UTF-8") from error
