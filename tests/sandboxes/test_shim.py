"""The script around commands, run by the shells that images have, in both ways that its output can come back."""

import asyncio
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from gymflow.contracts.sandbox import SandboxLimits, SandboxSpec
from gymflow.sandboxes import SandboxError
from gymflow.sandboxes.shim import ShimSandbox, inlined, reported

ALL_BYTES = bytes(range(256)) * 4
PAIRS = [
    ("dash", "raw"),
    pytest.param(("busybox", "text"), marks=pytest.mark.skipif(not shutil.which("busybox"), reason="no busybox")),
    pytest.param(("bash", "text"), marks=pytest.mark.slow),
]
"""Shell, and how output comes back."""


class HostShell(ShimSandbox):
    """The script as a plain process of this machine."""

    def __init__(self, spec: SandboxSpec, shell: str, how: str) -> None:
        super().__init__("test", spec, "none", {"PATH": "/usr/local/bin:/usr/bin:/bin"})
        self.how = how
        self._shell = [shell, "sh"] if shell == "busybox" else [shell]

    async def _process(self, argv, env, stdin):
        assert argv[0] == "/bin/sh"
        process = await asyncio.create_subprocess_exec(
            *self._shell, *argv[1:], env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        return process.returncode, *await process.communicate(stdin)

    async def _shimmed(self, words, *, env, stdin, deadline_s):
        if self.how == "raw":
            _, stdout, stderr = await self._process(words.argv, env, stdin or b"")
            said, _, line = stderr.rstrip(b"\n").rpartition(b"\n")
            return reported(line), stdout, said
        if stdin is not None:
            Path(words.path + ".in").write_bytes(stdin)
        _, stdout, _ = await self._process(words.argv, env, None)
        first, *rest = stdout.decode().splitlines()
        report = reported(first)
        if report.where == "inline":
            return report, *inlined(rest)
        return report, *(Path(words.path + end).read_bytes() for end in (".out", ".err"))

    async def _plain(self, argv, *, deadline_s):
        done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    async def _remove(self):
        pass


@pytest.fixture(params=PAIRS, ids="-".join)
async def sandbox(request, tmp_path, monkeypatch):
    monkeypatch.setattr("gymflow.sandboxes.shim.FOLDER", str(tmp_path / "shim"))
    spec = SandboxSpec(workdir=str(tmp_path / "work"), limits=SandboxLimits(output_mib=1))
    made = HostShell(spec, *request.param)
    await made.prepare()
    return made


async def test_exit_codes_streams_and_bytes_are_the_commands_own(sandbox):
    result = await sandbox.exec("printf 'a\\377\\000'; printf b >&2; exit 3")
    assert (result.outcome, result.exit_code, result.stdout, result.stderr) == ("exited", 3, b"a\xff\0", b"b")
    assert (await sandbox.exec(["cat"], stdin=ALL_BYTES)).stdout == ALL_BYTES
    assert (await sandbox.exec(["cat"])).stdout == b""
    assert (await sandbox.exec(["no-such-command"])).exit_code == 127
    assert (await sandbox.exec("true", cwd="no/such")).exit_code == 126
    killed = await sandbox.exec("kill -KILL $$")
    assert (killed.outcome, killed.exit_code) == ("killed", 137)


async def test_environment_folder_and_words_arrive_as_they_are(sandbox):
    odd = {"A": "line\nbreak", "B": "quote ' \" $HOME `id`", "C": "ünï"}
    result = await sandbox.exec('printf "%s|" "$A" "$B" "$C"; pwd', env=odd)
    assert result.stdout.decode() == "".join(f"{value}|" for value in odd.values()) + sandbox.spec.workdir + "\n"
    assert (await sandbox.exec(["echo", "$((1)) ; ' x"])).stdout == b"$((1)) ; ' x\n"


async def test_a_timeout_ends_children_that_changed_session(sandbox):
    began = time.monotonic()
    result = await sandbox.exec("echo begun; setsid sleep 86407 & sleep 86407", timeout_s=0.4)
    assert (result.outcome, result.exit_code, result.stdout) == ("timeout", 137, b"begun\n")
    assert time.monotonic() - began < 25
    assert subprocess.run(["pgrep", "-f", "sleep 86407"], capture_output=True).stdout == b""


async def test_a_command_that_clears_its_environment_ends_too(sandbox):
    result = await sandbox.exec(["env", "-i", "sleep", "86409"], timeout_s=0.3)
    assert result.outcome == "timeout" and result.duration_s < 20


async def test_a_cancelled_command_ends(sandbox):
    running = asyncio.ensure_future(sandbox.exec("sleep 86408"))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert subprocess.run(["pgrep", "-f", "sleep 86408"], capture_output=True).stdout == b""


async def test_what_a_child_in_the_background_holds_open_is_not_waited_for(sandbox):
    began = time.monotonic()
    assert (await sandbox.exec("echo begun; sleep 30 & echo $! >child")).stdout == b"begun\n"
    assert time.monotonic() - began < 25
    await sandbox.exec("kill $(cat child)")


async def test_output_is_kept_to_its_limit_and_a_flood_is_ended(sandbox):
    result = await sandbox.exec("head -c 900000 /dev/zero; echo end >&2", keep_bytes=100_000)
    assert (result.ok, len(result.stdout), result.stderr, result.truncated) == (True, 100_000, b"end\n", True)
    flood = await sandbox.exec("yes", timeout_s=30, keep_bytes=100)
    assert (flood.outcome, len(flood.stdout), flood.truncated) == ("output_limit", 100, True)


async def test_files_of_odd_names_come_back_as_they_were(sandbox):
    for name in ("plain", "a b/ü '\".bin", "-leading"):
        await sandbox.put(name, ALL_BYTES * 100)
        assert await sandbox.get(name) == ALL_BYTES * 100
    with pytest.raises(FileNotFoundError):
        await sandbox.get("no-such-file")


async def test_nothing_is_left_behind(sandbox):
    await sandbox.exec("echo out; echo err >&2", stdin=b"in")
    await sandbox.exec("sleep 9", timeout_s=0.2)
    folder = Path(sandbox.spec.workdir).parent / "shim"
    assert list(folder.iterdir()) == []


def test_a_report_that_is_none_is_an_error_of_the_sandbox():
    for said in ("", "sh: not found", "GYMFLOW_EXEC finished 0 1 2 raw"):
        with pytest.raises(SandboxError, match="not watched"):
            reported(said)
