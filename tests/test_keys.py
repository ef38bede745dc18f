"""Golden digests: a change here makes stored rollouts unfindable. Raise SAMPLING_PROTOCOL instead of editing them."""

from gymflow import keys
from gymflow.contracts.model import ModelIdentity, Sampling
from gymflow.contracts.task import Task

ROW = {
    "task_id": "t1",
    "responses_create_params": {"input": [{"role": "user", "content": "2+2?"}], "temperature": 0.5},
    "expected_answer": "4",
    "tags": ["easy"],
}


def agent_digest(**changes):
    asked = {
        "environment_digest": "e",
        "harness_digest": "h",
        "harness_parameters": {"max_turns": 3},
        "model": ModelIdentity(provider="embedded", model="arithmetic", revision="r1"),
        "sampling": Sampling(temperature=1, max_output_tokens=64),
        "auxiliary": {},
        "budgets": {"max_turns": 64},
        "sandbox": None,
    }
    return keys.agent_digest(**(asked | changes))


def test_golden_digests():
    task = Task.model_validate(ROW)
    assert keys.digest({"b": 1, "a": [1.0, "é"]}) == keys.digest({"a": [1, "é"], "b": 1.0})
    golden = {
        "digest": keys.digest({"b": 1, "a": [1.5, "é"]}),
        "files": keys.files_digest([("b.py", b"2"), ("a.py", b"1")]),
        "task_key": keys.task_key(task, None),
        "row": keys.row_digest(task),
        "agent": agent_digest(),
        "rollout": keys.rollout_key("a", "t", row_sampling={}, seed=7, repeat=0, occurrence=0),
        "verdict": keys.verdict_key(rollout_id="r-0", evidence_digest="e", judged_digest="j", fields_digest="f"),
        "question": keys.question_key(judge={"model": "m"}, instructions="i", text="t", schema={}, sample=0),
        "seed": keys.derived_seed(0, "t", 1),
    }
    assert golden == GOLDEN


GOLDEN = {
    "digest": "b3aa7c2c75e6eda68896ca65edd78b023f766c052f625885b86d88bfa1f1a585",
    "files": "c26d8b5f2ffae03414b1ab2051454b3898f79b6e9ca5df0291971a61560bbfbf",
    "task_key": "d7c90f1058f2649b9ee8e2fa22a7d4a2caa288f9c4c4dbd024f98489c73e6745",
    "row": "26b29fb3033493a74857821d99a33ce08bf14012faa2e8ea290ce1bdffa79469",
    "agent": "464aa67b12e6f22cac4d704de4a19b6f8c1f987ea69e4dc88b31c08be26a9899",
    "rollout": "08cc1f699d4d76ffa822b54f7a3f59a9d35aec097ee5ce4c5cc6b1ebbcd0d5a1",
    "verdict": "d1a363fda16b7c384e91783057214f50d9018587994b3953a1930fcdc42e6e62",
    "question": "eb4dbc46779f40bd317b5aa87ca646e0b9be2206ab3a767c41130423271cfcb6",
    "seed": 1091700605,
}


def test_the_verifiers_fields_do_not_change_what_the_agent_sees():
    other = Task.model_validate(ROW | {"expected_answer": "5", "tags": []})
    task = Task.model_validate(ROW)
    assert keys.task_key(task, None) == keys.task_key(other, None)
    assert keys.row_digest(task) != keys.row_digest(other)


def test_everything_that_was_asked_is_in_the_key():  # ca-model-in-key, ca-params-in-key
    digests = [
        agent_digest(),
        agent_digest(model=ModelIdentity(provider="embedded", model="other", revision="r1")),
        agent_digest(sampling=Sampling(temperature=0)),
        agent_digest(sampling=Sampling(temperature=0.7)),
        agent_digest(sampling=Sampling()),
        agent_digest(harness_parameters={"max_turns": 4}),
        agent_digest(budgets={"max_turns": 65}),
        agent_digest(sandbox={"image": "x"}),
        agent_digest(auxiliary={"user": ModelIdentity(provider="openai", model="m")}),
    ]
    assert len(set(digests)) == len(digests)


def test_an_integer_and_an_equal_float_are_the_same_setting():
    assert agent_digest(sampling=Sampling(temperature=1)) == agent_digest(sampling=Sampling(temperature=1.0))


def test_moving_bytes_between_files_changes_the_digest():
    assert keys.files_digest([("a", b"12"), ("b", b"3")]) != keys.files_digest([("a", b"1"), ("b", b"23")])


def test_seeds_fit_every_endpoint():
    seeds = {keys.derived_seed(0, "t", repeat) for repeat in range(1000)}
    assert len(seeds) > 990 and all(0 <= seed < 2**31 for seed in seeds)


def test_unicode_that_cannot_be_encoded_does_not_enter_the_digest_by_accident():  # io-surrogate-changes-hash
    assert keys.sampling_digest(Sampling(extra={"note": "\ud800"})) == keys.sampling_digest(
        Sampling(extra={"note": "\ud800"})
    )


def sandboxed(part):
    return Task.model_validate(ROW | {"sandbox": part})


def test_a_tasks_sandbox_goes_over_its_environments_in_the_key_as_in_the_run():
    environment = {"image": "python", "env": {"A": "1", "B": "2"}, "limits": {"memory_mib": 512}}
    task = sandboxed({"env": {"B": "3"}})
    assert keys.task_key(task, environment) == keys.task_key(
        sandboxed({"image": "python", "env": {"A": "1", "B": "3"}}), None
    )
    assert keys.task_key(task, environment) != keys.task_key(task, {**environment, "image": "node"})
    assert keys.task_key(task, environment) != keys.task_key(sandboxed({"env": {"B": "4"}}), environment)


def test_where_a_run_has_its_sandboxes_made_does_not_make_another_task():
    task = sandboxed({"files": {"a": "b"}})
    here, there = (
        {"provider": name, "limits": {"memory_mib": size}} for name, size in (("local", 256), ("docker", 512))
    )
    assert keys.task_key(task, here) == keys.task_key(task, there)
    assert agent_digest(sandbox=here) != agent_digest(sandbox=there)


def test_an_integer_and_an_equal_float_are_the_same_limit():
    one, other = sandboxed({"limits": {"cpus": 2}}), sandboxed({"limits": {"cpus": 2.0}})
    assert keys.task_key(one, None) == keys.task_key(other, None)
