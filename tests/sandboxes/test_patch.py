"""Patches say what changed, and applying them gives exactly that."""

import shutil
import subprocess

import pytest
from gymflow.verifiers._workspace import apply
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.sandboxes import patch

line = st.text(alphabet="ab\r\t\x0c\u2028é ", max_size=3)
content = st.lists(line, max_size=9).map("\n".join).map(str.encode)
trees = st.dictionaries(st.sampled_from(["a", "b.py", "dir/c"]), content.filter(bool), max_size=3)


@settings(deadline=None)
@given(trees, trees)
def test_a_patch_applied_to_what_was_before_gives_what_is_after(before, after):
    assert apply(patch.diff(before, after).decode(), before) == after


def test_equal_folders_have_an_empty_patch_and_binary_files_are_only_named():
    assert patch.diff({"a": b"x"}, {"a": b"x"}) == b""
    assert patch.diff({"a": b"\0"}, {"a": b"\0\1"}) == b"Binary files a/a and b/a differ\n"


def test_a_very_long_file_is_replaced_as_a_whole():
    before = {"a": b"".join(b"%d\n" % n for n in range(patch.MAX_LINES + 1))}
    after = {"a": before["a"] + b"end\n"}
    assert apply(patch.diff(before, after).decode(), before) == after


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_applies_it(tmp_path):
    before = {"a": b"1\n2\n3\n", "gone": b"x\n", "end": b"no newline"}
    after = {"a": b"1\ntwo\n3\n", "new/b": b"b\n", "end": b"no newline\n"}
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    subprocess.run(["git", "apply", "-"], input=patch.diff(before, after), cwd=tmp_path, check=True)
    left = {str(f.relative_to(tmp_path)): f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
    assert left == after
