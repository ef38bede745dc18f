"""What analysis asks of a run: the same however many rollouts are looked at together, and what the views say."""

import pytest

from gymflow.analysis import facts as module
from gymflow.contracts.outcome import FailureKind, StopReason

from .conftest import Planter, Said, Sample, answering


def test_the_facts_are_the_same_slice_by_slice(planter: Planter, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = [Sample([Said("I cannot say more.")]), Sample([Said("Well.", finish="length")], stop=StopReason.MAX_TURNS)]
    tasks = [silent, [answering(planter.gold(1))] * 2, [Sample(failed=FailureKind.MODEL_ERROR), answering("Z")]]
    run_id = planter.run("r", tasks)
    found = []
    for at_once in (1, 4, module.ROLLOUTS_AT_ONCE):
        monkeypatch.setattr(module, "ROLLOUTS_AT_ONCE", at_once)
        with module.facts(planter.store, run_id) as connection:
            found.append(connection.execute("select * from facts.rollouts order by plan_index").fetchall())
            columns = "rollout_id, task_id, status, stop_reason, failure, outcome, reward, passed, extracted_answer"
            held = connection.execute(f"select {columns} from facts.rollouts order by plan_index").fetchall()
            seen = connection.execute(f"select {columns} from outcomes where is_current order by plan_index").fetchall()
            assert held == seen
    assert found[0] == found[1] == found[2]
    assert [len(rows) for rows in found] == [6, 6, 6]
