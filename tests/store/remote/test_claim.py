"""The lease across machines."""

import io
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest

from gymflow.errors import RunLocked
from gymflow.store.remote import claim as claims
from gymflow.store.remote.bucket import Bucket
from gymflow.store.remote.claim import Claim, claimed

KEY = "runs/r/writer.lease"


def owned(bucket: Bucket, **changes: Any) -> None:
    """A lease that nobody renews."""
    held = Claim(bucket, "r")
    content = orjson.loads(held._content) | changes
    held.release()
    bucket.upload(KEY, io.BytesIO(orjson.dumps(content)))


def test_one_of_many_gets_it_and_the_others_say_who(bucket: Bucket) -> None:
    def attempt(_: int) -> Claim | str:
        try:
            return Claim(bucket, "r")
        except RunLocked as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(attempt, range(4)))
    (held,) = [one for one in found if isinstance(one, Claim)]
    assert all("is being written by process" in one for one in found if isinstance(one, str))
    assert claimed(bucket, "r")
    held.release()
    assert not claimed(bucket, "r") and not bucket.list("runs/")


def test_a_dead_process_of_this_machine_is_followed_at_once(bucket: Bucket) -> None:
    owned(bucket, pid=2**22 + 1)
    assert not claimed(bucket, "r")
    Claim(bucket, "r").release()


def test_a_process_of_that_number_on_another_machine_is_not_taken_for_dead(bucket: Bucket) -> None:
    owned(bucket, pid=2**22 + 1, machine="elsewhere")
    with pytest.raises(RunLocked, match="its lease ends within 90 s"):
        Claim(bucket, "r")


def test_a_lease_that_is_not_renewed_runs_out(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    owned(bucket, machine="elsewhere")
    monkeypatch.setattr(claims, "LIFE_S", 2.0)  # the service tells whole seconds
    with pytest.raises(RunLocked):
        Claim(bucket, "r")
    time.sleep(3)
    Claim(bucket, "r").release()


def test_a_lease_that_is_renewed_does_not_run_out(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LIFE_S", 2.0)
    held = Claim(bucket, "r")
    time.sleep(3)
    with pytest.raises(RunLocked):
        Claim(bucket, "r")
    held.require()
    held.release()


def test_who_lost_it_knows_and_leaves_the_other_s_alone(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LIFE_S", 1.0)
    held = Claim(bucket, "r")
    bucket.upload(KEY, io.BytesIO(orjson.dumps(orjson.loads(held._content) | {"owner": "another"})))
    time.sleep(1)
    with pytest.raises(RunLocked, match="another machine writes the run now"):
        held.require()
    held.release()
    assert KEY in bucket.list("runs/")
