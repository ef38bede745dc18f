"""The tools of a sandbox: what the model sees of commands, files and its own mistakes."""

from collections.abc import Awaitable, Callable

import pytest
from gymflow.harnesses._shell_tools import ShellTools
from jsonschema import Draft202012Validator

from gymflow.environments import ToolResult
from gymflow.sandboxes import SandboxLimits, SandboxSpec, open_sandbox
from gymflow.sandboxes.local.platform import bubblewrap

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

Use = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
async def use():
    spec = SandboxSpec(
        files={"a.txt": "one\ntwo\nthree\n", "src/b.py": "x = 1\nx = 1\n"}, limits=SandboxLimits(memory_mib=128)
    )
    async with open_sandbox(spec) as sandbox:
        tools = {
            tool["name"]: answer for tool, answer in ShellTools(sandbox, timeout_s=20, output_characters=400).offered()
        }

        async def call(name: str, **arguments) -> ToolResult:
            return await tools[name](arguments)

        yield call


async def test_commands_say_output_and_exit_code(use: Use):
    result = await use("run_command", command="pwd; echo problem >&2; exit 3")
    assert result == ToolResult("/work\nproblem\n\n[exit code 3]", error=True)
    assert (await use("run_command", command="true")).output == "\n[exit code 0]"


async def test_files_persist_and_shells_do_not(use: Use):
    await use("run_command", command="cd src; touch new; X=1; export X")
    assert (await use("run_command", command="echo ${X:-unset}; pwd; ls src")).output.startswith(
        "unset\n/work\nb.py\nnew\n"
    )


async def test_a_command_that_does_not_end_is_killed_and_that_is_said(use: Use):
    result = await use("run_command", command="echo before; sleep 60", timeout=1)
    assert result.output == "before\n\n[killed: it did not end within 1 seconds]" and result.error
    assert "at most 20" in (await use("run_command", command="true", timeout=-1)).output


async def test_long_output_loses_its_middle(use: Use):
    result = await use("run_command", command="seq 1000")
    assert "characters left out" in result.output and len(result.output) < 500
    assert result.output.startswith("1\n2\n") and "1000\n\n[exit code 0]" in result.output


async def test_running_out_of_memory_is_said(use: Use):
    result = await use("run_command", command="python3 -c 'x = bytearray(1 << 30)'")
    assert result.error and ("out of memory" in result.output or "MemoryError" in result.output)


async def test_files_are_read_with_line_numbers(use: Use):
    assert (await use("read_file", path="a.txt")).output == "     1\tone\n     2\ttwo\n     3\tthree"
    assert (await use("read_file", path="/work/a.txt", first_line=2, last_line=2)).output == "     2\ttwo"
    assert (
        await use("read_file", path="a.txt", first_line=9)
    ).output == "a.txt has 3 lines, none of them in that range"


@pytest.mark.parametrize(
    ("path", "said"), [("gone", "there is no file gone"), ("src", "it is a folder"), ("binary", "not a text file")]
)
async def test_what_cannot_be_read_is_said(use: Use, path, said):
    await use("run_command", command="printf '\\377\\376' > binary")
    result = await use("read_file", path=path)
    assert result.error and said in result.output


async def test_files_are_written_with_their_folders_and_keep_their_mode(use: Use):
    assert (await use("write_file", path="new/deep/c.txt", content="é\n")).output == "written new/deep/c.txt (3 bytes)"
    await use("run_command", command="chmod 755 a.txt")
    await use("write_file", path="a.txt", content="")
    assert (await use("run_command", command="cat new/deep/c.txt; stat -c '%a %s' a.txt")).output.startswith(
        "é\n755 0\n"
    )
    refused = await use("write_file", path="/usr/bin/ls", content="x")
    assert refused.error and "was not written" in refused.output


async def test_a_passage_is_replaced_only_where_it_is_clear_which(use: Use):
    assert (await use("edit_file", path="a.txt", old="two\n", new="2\n")).output.startswith("edited a.txt")
    assert (await use("read_file", path="a.txt")).output.endswith("2\t2\n     3\tthree")
    for path, old, said in (
        ("src/b.py", "x = 1", "occurs 2 times"),
        ("a.txt", "nine", "does not occur"),
        ("a.txt", "", "does not occur"),
        ("gone", "x", "there is no file"),
    ):
        result = await use("edit_file", path=path, old=old, new="y")
        assert result.error and said in result.output
    assert (await use("read_file", path="src/b.py")).output.count("x = 1") == 2


async def test_files_are_listed(use: Use):
    assert (await use("list_files")).output == "14 ./a.txt\n12 ./src/b.py"
    assert (await use("list_files", path="src")).output == "12 ./b.py"
    assert (await use("list_files", path="gone")).error
    await use("run_command", command="mkdir empty 'with space'; for n in $(seq 600); do : > \"with space/$n\"; done")
    assert (await use("list_files", path="empty")).output == "there are no files"
    assert (await use("list_files", path="with space")).output.endswith("… more than 500 files")


async def test_names_that_look_like_options_or_commands_are_names(use: Use):
    name = "-n $(touch hacked) 'x'"
    assert not (await use("write_file", path=name, content="safe\n")).error
    assert (await use("read_file", path=name)).output == "     1\tsafe"
    assert "hacked" not in (await use("list_files")).output.replace(name, "")


async def test_what_no_kernel_takes_is_the_models_mistake_and_not_a_broken_sandbox(use: Use):
    for name, arguments in (
        ("run_command", {"command": "echo a\0b"}),
        ("run_command", {"command": "echo " + "x" * 200_000}),
        ("read_file", {"path": "a\0.txt"}),
        ("write_file", {"path": "a\0.txt", "content": ""}),
    ):
        assert (await use(name, **arguments)).error
    assert (await use("run_command", command="echo '\ud800'")).output.startswith("?\n")
    assert not (await use("write_file", path="big.txt", content="x" * 500_000)).error
    assert (await use("run_command", command="wc -c < big.txt")).output.startswith("500000\n")


def test_schemas_are_valid_and_described():
    class Place:
        spec = SandboxSpec()

    for tool, _ in ShellTools(Place(), timeout_s=5, output_characters=400).offered():
        Draft202012Validator.check_schema(tool["parameters"])
        assert tool["description"] and all("description" in one for one in tool["parameters"]["properties"].values())


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("n" * 300, "File name too long"),
        ("loop", "Too many levels of symbolic links"),
        ("/proc/1/mem", "cannot be read"),
        ("a.txt/below", "a part of it is not a folder"),
        ("/dev/zero", "not a regular file"),
    ],
)
async def test_an_odd_path_is_told_to_the_model_by_every_tool(use: Use, path: str, said: str):
    await use("run_command", command="ln -s loop loop")
    read = await use("read_file", path=path)
    assert read.error and said in read.output
    assert (await use("edit_file", path=path, old="x", new="y")).error
    if path != "/dev/zero":
        assert (await use("write_file", path=path, content="x")).error
        assert (await use("list_files", path=path)).error


async def test_a_model_that_kills_everything_goes_on(use: Use):
    await use("run_command", command="kill -9 -1")
    assert (await use("read_file", path="a.txt")).output.endswith("three")
