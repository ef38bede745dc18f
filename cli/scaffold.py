"""`gym env init`: a new environment from a template, complete enough to validate and run."""

import re
from pathlib import Path

from gymflow.errors import InputError
from gymflow.suggest import did_you_mean

TEMPLATES = Path(__file__).parent / "templates"
PLACEHOLDER = "ENVIRONMENT_NAME"


def scaffold(name: str, directory: Path, template: str) -> Path:
    """Write `directory/name` and return it. InputError for a name that is no module name, an unknown template, or a folder that
    exists already."""
    known = sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir() and not path.name.startswith("_"))
    if template not in known:
        raise InputError(f"--template: there is no {template!r}; {did_you_mean(template, known)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(
            f"{name!r} cannot name an environment: lower-case letters, digits and underscores, a letter first"
        )
    folder = directory / name
    if folder.exists():
        raise InputError(f"{folder} exists already; choose another name, or another --dir")
    try:
        folder.mkdir(parents=True)
        for source in sorted((TEMPLATES / template).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                target = folder / source.relative_to(TEMPLATES / template)
                target.parent.mkdir(exist_ok=True)
                target.write_text(source.read_text(encoding="utf-8").replace(PLACEHOLDER, name), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
    return folder
