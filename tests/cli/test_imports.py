"""What a command loads decides how soon it answers."""

import json
import subprocess
import sys
from pathlib import Path

HEAVY = {"prefect", "duckdb", "pyarrow", "numpy", "aiohttp", "openai", "rich.live"}
PROBE = """
import json, sys
{code}
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
COMMANDS = """
from cli.main import main
for words in {commands!r}:
    sys.argv = ["gym", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (words, ended.code)
"""


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_import_gymflow_is_light() -> None:
    assert not (HEAVY | {"pydantic"}) & loaded("import gymflow")


def test_help_is_light_and_names_every_command() -> None:
    assert not HEAVY & loaded(COMMANDS.format(commands=[["--help"], ["--version"]]))


def test_commands_that_read_and_runs_without_a_server_do_not_import_prefect(store: Path, home: Path) -> None:
    config = home / "run.json"
    model = {"provider": "scripted", "parameters": {"rules": [{"text": "A"}]}}
    config.write_text(json.dumps({"environments": [{"name": "mcqa", "limit": 1}], "models": {"policy": model}}))
    commands = [
        ["eval", "run", "--config", str(config)],
        ["runs"],
        ["show", "latest"],
        ["sql", "select count(*) from rollouts"],
    ]
    assert "prefect" not in loaded(COMMANDS.format(commands=commands))
