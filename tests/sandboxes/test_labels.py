"""Who owns a sandbox, and when it may be removed."""

import os
import subprocess
import sys

from gymflow.sandboxes.labels import EXPIRES, OWNER, Owner, is_orphan, matches, owned


def test_an_owner_survives_its_text_form():
    owner = Owner.current()
    assert Owner.parse(str(owner)) == owner and owner.alive is True


def test_a_process_that_ended_or_whose_pid_was_reused_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = Owner.current()
    child.communicate(b"\n")
    assert Owner(here.host, child.pid, 1).alive is False
    assert Owner(here.host, os.getpid(), here.started + 1).alive is False


def test_only_sandboxes_of_dead_owners_or_past_their_time_are_orphans():
    here = Owner.current()
    mine = owned({"gymflow.run": "r"}, wall_s=None)
    assert not is_orphan(mine)
    assert is_orphan({**mine, OWNER: str(Owner(here.host, 4_999_999, 1))})
    assert not is_orphan({OWNER: str(Owner("another-machine", 4_999_999, 1))})
    assert is_orphan({OWNER: str(Owner("another-machine", 1, 1)), EXPIRES: "1000"}, now=1001)
    assert not is_orphan({"some": "label"})
    assert not is_orphan({OWNER: "not one of ours"})


def test_expiry_is_the_wall_time_from_now():
    assert EXPIRES not in owned(None, wall_s=None)
    assert not is_orphan(owned(None, wall_s=60))


def test_labels_match_when_all_wanted_are_there():
    assert matches({"a": "1", "b": "2"}, {"a": "1"}) and matches({}, None)
    assert not matches({"a": "1"}, {"a": "2"})
