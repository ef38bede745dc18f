"""The view of flips between verdict sets."""

from pathlib import Path

from gymflow.store import Store, connect
from gymflow.store.manifest import RunManifest
from tests.support.synthetic import JUDGED, write_run


def test_flips_are_rollouts_that_pass_in_one_set_and_not_in_a_later_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "r", [[1.0, 0.0], [0.0, 0.0]])
    layout = store.layout.run("r")
    manifest = RunManifest.model_validate_json(layout.manifest.read_bytes())
    first = manifest.verdict_sets[0]
    second = first.model_copy(update={"name": "second", "judged": {"mcqa": JUDGED.model_copy(update={"version": "2"})}})
    # The second set has the first one's verdicts, but for the rollouts of the second repeat, which now pass.
    with connect(store.root) as connection:
        connection.execute(
            f"""
            COPY (
                SELECT * EXCLUDE (judged_in, is_current) FROM verdicts
                UNION ALL BY NAME
                SELECT * EXCLUDE (judged_in, is_current) REPLACE (
                    'second' AS verdict_set, CASE WHEN seq >= 2 THEN 1.0 ELSE reward END AS reward,
                    seq >= 2 OR passed AS passed, 'looked again' AS reason
                ) FROM verdicts
            ) TO '{layout.part("verdicts", "000001.parquet")}' (FORMAT parquet)
            """
        )
    part = manifest.parts["verdicts"][0].model_copy(update={"file": "000001.parquet", "rows": 8})
    parts = manifest.parts | {"verdicts": [part]}
    layout.manifest.write_text(
        manifest.model_copy(update={"parts": parts, "verdict_sets": [first, second]}).model_dump_json()
    )
    with connect(store.root) as connection:
        rows = connection.execute(
            "select task_id, repeat, old_set, new_set, old_passed, new_passed, old_reward, new_reward, new_reason "
            "from flips order by all"
        ).fetchall()
    assert rows == [(task, 1, "first", "second", False, True, 0.0, 1.0, "looked again") for task in ("q0", "q1")]
