"""Archives across the boundary: traversal, devices, links and bombs."""

import gzip
import io
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymflow.sandboxes import TooLarge, UnsafePath, archive


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "member",
    [
        special("../up", tarfile.REGTYPE),
        special("a/../../up", tarfile.REGTYPE),
        special("/etc/passwd", tarfile.REGTYPE),
        special("link", tarfile.SYMTYPE, "/etc/passwd"),
        special("sub/link", tarfile.SYMTYPE, "../../up"),
        special("hard", tarfile.LNKTYPE, "../up"),
        special("device", tarfile.CHRTYPE),
        special("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: member.name,
)
def test_what_leads_outside_or_is_special_is_refused_or_left_out(member, tmp_path):
    packed = tar_of((member, b""), (tarfile.TarInfo("good"), b"x"))
    with pytest.raises(UnsafePath):
        archive.checked(packed)
    with pytest.raises(UnsafePath):
        archive.unpack(packed, tmp_path / "out")
    assert archive.read(archive.normalised(packed)) == {"good": b"x"}


def test_a_link_through_a_link_does_not_lead_outside(tmp_path):
    packed = tar_of(
        (special("a", tarfile.SYMTYPE, "."), b""),
        (special("a/b", tarfile.SYMTYPE, "../.."), b""),
        (tarfile.TarInfo("a/b/escaped"), b"x"),
    )
    with pytest.raises(UnsafePath):
        archive.unpack(packed, tmp_path / "deep" / "out")
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    "target", ["z1/z2/a/../tests/answer", "z1/z2/a/../../x", "z3/../../x", "z1/z2/../../z1/z2/a/../x"]
)
def test_a_link_that_goes_up_behind_a_link_is_refused_however_their_names_sort(target, tmp_path):
    packed = tar_of(
        (special("answer", tarfile.SYMTYPE, target), b""),
        (special("zz", tarfile.SYMTYPE, target), b""),
        (special("z1/z2/a", tarfile.SYMTYPE, "../.."), b""),
        (special("z3", tarfile.SYMTYPE, "z1/z2"), b""),
        (tarfile.TarInfo("good"), b"x"),
    )
    with pytest.raises(UnsafePath):
        archive.checked(packed)
    archive.unpack(archive.normalised(packed), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["good", "z1", "z3"]


def test_a_link_that_goes_up_behind_a_folder_stays_and_leads_to_the_same_place(tmp_path):
    packed = tar_of(
        (special("a/b/link", tarfile.SYMTYPE, ".././../c/../d"), b""),
        (tarfile.TarInfo("d"), b"x"),
        (tarfile.TarInfo("c/e"), b""),
    )
    archive.unpack(packed, tmp_path)
    assert (tmp_path / "a/b/link").read_bytes() == b"x"


link_names = st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/a", "a/b/c", "b/c/a"])
targets = st.lists(st.sampled_from(["..", ".", "a", "b", "c"]), min_size=1, max_size=6).map("/".join)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(link_names, targets, max_size=6), st.sets(link_names, max_size=3))
def test_whatever_an_archive_holds_nothing_of_it_leads_outside_when_it_is_unpacked(links, folders):
    members = [(special(name, tarfile.DIRTYPE), b"") for name in folders]
    members += [(special(name, tarfile.SYMTYPE, target), b"") for name, target in links.items()]
    clean = archive.normalised(tar_of(*members))
    assert archive.normalised(clean) == clean == archive.checked(clean)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place).resolve() / "in" / "deep" / "out"
        archive.unpack(clean, out)
        for path in out.rglob("*"):
            if path.exists():  # a loop leads nowhere
                assert path.resolve().is_relative_to(out)


def test_a_hard_link_is_a_file_of_its_own():
    packed = tar_of((tarfile.TarInfo("b"), b"x"), (special("a", tarfile.LNKTYPE, "b"), b""))
    assert archive.read(archive.checked(packed)) == {"a": b"x", "b": b"x"}


def test_hard_links_count_towards_the_limit():
    packed = tar_of(
        (tarfile.TarInfo("b"), b"x" * 100), *((special(f"a{n}", tarfile.LNKTYPE, "b"), b"") for n in range(20))
    )
    with pytest.raises(TooLarge):
        archive.checked(packed, max_bytes=1000)


@pytest.mark.parametrize("target", ["link", "nothing", "folder"])
def test_a_hard_link_to_what_is_no_file_is_refused(target):
    packed = tar_of(
        (special("link", tarfile.SYMTYPE, "../x"), b""), (special("folder", tarfile.DIRTYPE), b""),
        (special("hard", tarfile.LNKTYPE, target), b""),
    )  # fmt: skip
    with pytest.raises(UnsafePath):
        archive.checked(packed)
    assert "hard" not in archive.read(archive.normalised(packed))


def test_what_lies_below_a_file_or_a_link_is_refused_or_left_out():
    packed = tar_of(
        (tarfile.TarInfo("f"), b"1"), (tarfile.TarInfo("f/x/y"), b"2"),
        (special("l", tarfile.SYMTYPE, "."), b""), (tarfile.TarInfo("l/f"), b"3"),
    )  # fmt: skip
    with pytest.raises(UnsafePath):
        archive.checked(packed)
    assert archive.read(archive.normalised(packed)) == {"f": b"1"}


def test_a_chain_of_folders_is_kept_to_a_depth_that_can_be_handled(tmp_path):
    deepest = "/".join("d" for _ in range(archive.MAX_DEPTH))
    packed = tar_of(*((tarfile.TarInfo(f"{path}"), b"x") for path in (deepest, f"e/{deepest}", "/".join("f" * 2000))))
    with pytest.raises(UnsafePath, match="folders deep"):
        archive.checked(packed)
    assert archive.read(archive.normalised(packed)) == {deepest: b"x"}
    archive.unpack(archive.normalised(packed), tmp_path)
    assert (tmp_path / deepest).read_bytes() == b"x"


def test_a_bomb_stops_at_the_limit():
    inner = tar_of((tarfile.TarInfo("zeros"), b"\0" * (20 << 20)))
    bomb = gzip.compress(inner)
    assert len(bomb) < 100_000
    with pytest.raises(TooLarge):
        archive.read(bomb, max_bytes=1 << 20)
    with pytest.raises(TooLarge):
        archive.checked(tar_of(*((tarfile.TarInfo(str(n)), b"") for n in range(20))), max_files=10)


def test_a_sparse_member_that_claims_terabytes_is_not_expanded():
    member = tarfile.TarInfo("huge")
    member.size = 10 << 40
    with pytest.raises((TooLarge, tarfile.ReadError)):
        archive.read(member.tobuf() + b"\0" * 1024)


names = st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=8), min_size=1, max_size=3).map("/".join)  # fmt: skip


@given(st.dictionaries(names, st.binary(max_size=64), max_size=5))
def test_files_survive_the_round_trip_or_are_refused(files):
    try:
        packed = archive.pack(files)
    except UnsafePath:
        assert any(part in ("..", ".") for name in files for part in name.split("/"))
        return
    expected = {archive.safe_name(name): data for name, data in files.items()}
    assert archive.read(packed) == archive.read(archive.normalised(packed)) == expected
    assert archive.normalised(packed) == archive.normalised(archive.normalised(packed))
