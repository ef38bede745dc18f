"""Archives across the boundary: traversal, devices, links and bombs."""

import gzip
import io
import tarfile

import pytest
from hypothesis import given
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
