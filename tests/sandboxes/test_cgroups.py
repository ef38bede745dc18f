"""Control groups of version 2 on a made-up tree: this machine's are of version 1, which the other tests use for real."""

import os
from pathlib import Path

import pytest

from gymflow.sandboxes.labels import start_time
from gymflow.sandboxes.local import cgroups


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "gymflow"
    base.mkdir()
    (base / "cgroup.subtree_control").write_text("cpu memory pids")
    return cgroups.TreeV2(base)


def test_version_2_limits_are_written_where_the_kernel_reads_them(tree):
    group = tree.create("p1-t1-a", cpus=0.5, memory_mib=64, processes=32)
    folder = tree.base / "p1-t1-a"
    assert (folder / "memory.max").read_text() == str(64 << 20)
    assert (folder / "pids.max").read_text() == "32"
    assert (folder / "cpu.max").read_text() == "50000 100000"
    assert (folder / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert group.join == [str(folder / "init" / "cgroup.procs")]


def test_version_2_commands_get_leaves_of_their_own(tree):
    group = tree.create("p1-t1-a")
    child = group.child("e1")
    assert child.join == [str(tree.base / "p1-t1-a" / "e1" / "cgroup.procs")]
    (tree.base / "p1-t1-a" / "e1" / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (tree.base / "p1-t1-a" / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    (tree.base / "p1-t1-a" / "memory.peak").write_text("4096\n")
    assert child.cpu_s() == 1.5
    assert group.oom_kills() == 2 and group.peak_memory_bytes() == 4096


def test_version_2_is_killed_by_its_switch(tree):
    group = tree.create("p1-t1-a")
    folder = tree.base / "p1-t1-a"
    (folder / "cgroup.kill").write_text("")
    (folder / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert group.kill() is False
    assert (folder / "cgroup.kill").read_text() == "1"
    (folder / "cgroup.events").write_text("populated 0\nfrozen 0\n")
    assert group.kill() is True


def test_orphans_are_groups_whose_owner_ended(tmp_path):
    tree = cgroups.TreeV1({"pids": tmp_path})
    alive = tmp_path / f"p{os.getpid()}-t{start_time(os.getpid())}-x"
    recycled = tmp_path / f"p{os.getpid()}-t1-x"
    dead = tmp_path / "p4999999-t1-x"
    for folder in (alive, recycled, dead, tmp_path / "someone-elses", tmp_path / "probe-1"):
        folder.mkdir()
    assert sorted(cgroups.orphans(tree)) == sorted([recycled, dead])


def test_cpu_and_cpuacct_in_one_hierarchy_share_a_childs_group(tmp_path):
    both, pids = tmp_path / "cpu,cpuacct", tmp_path / "pids"
    both.mkdir()
    pids.mkdir()
    tree = cgroups.TreeV1({"pids": pids, "cpuacct": both, "cpu": both})
    for name in ("cpu.cfs_period_us", "cpu.cfs_quota_us"):
        (both / name).write_text("")
    child = tree.create("a").child("e1")
    assert {str(Path(path).parent) for path in child.join} == {str(both / "a" / "e1"), str(pids / "a" / "e1")}
