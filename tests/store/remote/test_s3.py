"""Stores on S3, through what a user types."""

import json
import time

import pytest
import yaml

pytestmark = pytest.mark.slow
QUICK = ("--no-health", "--no-diagnosis")


@pytest.fixture
def slow_run(tmp_path):
    """A run of twenty seconds that costs next to nothing: 336 rollouts, 8 at a time, half a second each."""
    rules = [{"text": "Answer: A", "delay_s": 0.5}]
    config = {
        "environments": [{"name": "mcqa"}],
        "models": {"policy": {"provider": "scripted", "parameters": {"rules": rules}}},
        "repeats": 4,
        "limits": {"concurrency": 8},
    }
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(config))
    return ("eval", "run", "--config", str(file), *QUICK)


def rows(machine, query):
    code, out, err = machine.gym("sql", query, "--json")
    assert code == 0, err
    return json.loads(out)


def count(machine, what="outcomes"):
    return rows(machine, f"select count(*) as n from {what}")[0]["n"]


def only_run(machine):
    code, out, err = machine.gym("runs", "--json")
    assert code == 0, err
    (one,) = json.loads(out)
    return one


def until(condition, process):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)


def test_another_machine_reads_and_continues_a_run(machine, s3):
    a, b = machine("a"), machine("b")
    code, out, err = a.gym("eval", "run", "mcqa", "--limit", "4")
    assert code == 0, err
    assert a.url in out and str(a.folder) not in out + err
    assert f"{a.url} has everything (" in err
    run_id = only_run(b)["run_id"]
    assert not b.files("runs/*/parts/evidence/*") and b.files("runs/*/parts/rollouts/*")
    assert count(b, "turns") == 4
    assert b.files("runs/*/parts/evidence/*")
    for words in (
        ("show", run_id),
        ("eval", "profile", run_id),
        ("eval", "health", run_id),
        ("eval", "report", run_id),
    ):
        code, out, err = b.gym(*words)
        assert code == 0, err
    code, out, err = b.gym("eval", "reverify", run_id, "--set", "verifier.mode=lenient")
    assert code == 0, err
    before = rows(b, "select rollout_id, started_at from rollouts order by all")
    code, out, err = b.gym("eval", "run", "--resume", run_id, "--repeats", "2")
    assert code == 0, err
    after = rows(a, "select rollout_id, started_at from rollouts order by all")
    assert len(after) == 8 and [row for row in after if row in before] == before
    assert only_run(a)["verdict_sets"] == 2
    assert a.files("runs/*/reports/report.html") or a.gym("show", run_id)[0] == 0
    keys = [e["Key"] for e in s3.list_objects_v2(Bucket="bucket", Prefix=a.url.rpartition("/")[2])["Contents"]]
    (manifest,) = b.files(f"runs/{run_id}/manifest.json")
    parts = json.loads(manifest.read_bytes())["parts"]["rollouts"]
    assert sum("/parts/rollouts/" in key for key in keys) == len(parts)
    assert not any("writer.lease" in key for key in keys)


def test_a_killed_run_goes_on_elsewhere_from_what_was_uploaded(machine, service, slow_run):
    a, b = machine("a"), machine("b")
    process = a.start(*slow_run)
    until(lambda: sum("/journal/" in key for key in service.keys("PUT")) >= 2, process)
    process.kill()
    process.communicate()
    run_id = only_run(b)["run_id"]
    before = rows(b, "select rollout_id, started_at from rollouts order by all")
    assert before
    code, _out, err = b.gym("eval", "run", "--resume", run_id, *QUICK)
    assert code == 0, err
    after = rows(b, "select rollout_id, started_at from rollouts order by all")
    assert len(after) == 336 and [row for row in after if row in before] == before
    code, _out, err = a.gym("show", run_id)
    assert code == 0 and "went on elsewhere without what was not uploaded from here" in err
    assert rows(a, "select rollout_id, started_at from rollouts order by all") == after


def test_a_killed_run_goes_on_where_it_was_with_all_that_was_durable_there(machine, service, slow_run):
    a = machine("a")
    process = a.start(*slow_run)
    until(lambda: any("/journal/" in key for key in service.keys("PUT")), process)
    time.sleep(1)
    process.kill()
    process.communicate()
    (segment,) = a.files("runs/*/journal/*.jsonl")
    durable = segment.read_bytes().count(b'"kind":"rollout"')
    run_id = only_run(a)["run_id"]
    assert count(a, "rollouts") == durable
    assert a.gym("show", run_id)[0] == 0
    assert count(machine("b"), "rollouts") == durable
    code, _out, err = a.gym("eval", "run", "--resume", run_id, *QUICK)
    assert code == 0 and f"{durable} of them durable already" in err
    assert count(machine("b"), "rollouts") == 336


def test_a_bucket_that_is_unavailable_for_a_while_is_waited_for(machine, service):
    a = machine("a")
    since = []

    def refuse(method, path):
        if method != "PUT" or "/journal/" not in path:
            return False
        since or since.append(time.monotonic())
        return time.monotonic() < since[0] + 2

    service.refuse = refuse
    code, _out, err = a.gym("eval", "run", "mcqa", "--limit", "4", *QUICK)
    assert code == 0, err
    assert service.refused
    assert count(machine("b")) == 4


def test_what_could_not_be_uploaded_is_said_and_is_uploaded_by_the_next_command(machine, service):
    a = machine("a")
    service.status, service.code = 403, "AccessDenied"
    service.refuse = lambda method, path: method == "PUT" and ("/journal/" in path or "/parts/" in path)
    code, out, err = a.gym("eval", "run", "mcqa", "--limit", "4", *QUICK)
    assert code == 3 and "4/4" in out + err
    assert "nothing is lost" in err and "the key was refused" in err and "Traceback" not in err
    code, _out, err = a.gym("eval", "run", "nowhere")
    assert code == 2 and "nowhere" in err
    service.refuse = lambda method, path: False
    code, _out, err = a.gym("show", "latest")
    assert code == 0, err
    assert count(machine("b")) == 4


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [(403, "InvalidAccessKeyId", "the key was refused"), (404, "NoSuchBucket", "there is no bucket 'bucket'")],
)
def test_a_bucket_that_cannot_be_had_is_one_message_before_anything_is_sampled(machine, service, status, code, message):
    a = machine("a")
    service.status, service.code = status, code
    service.refuse = lambda method, path: True
    exit_code, out, err = a.gym("eval", "run", "mcqa", "--limit", "1")
    assert exit_code == 2
    assert message in err and err.count("\n") == 1 and not out
    assert not a.files("runs/*")


def test_of_two_machines_one_writes_a_run(machine, service, slow_run):
    a, b = machine("a"), machine("b")
    process = a.start(*slow_run)
    until(lambda: any(key.endswith("manifest.json") for key in service.keys("PUT")), process)
    one = only_run(b)
    assert one["being_written"]
    code, _out, err = b.gym("eval", "run", "--resume", one["run_id"], *QUICK)
    still_going = process.poll() is None
    _out_a, err_a = process.communicate(timeout=120)
    assert still_going
    assert code == 2 and f"is being written by process {process.pid}" in err
    assert process.returncode == 0, err_a
    assert count(b) == 336
