"""Result sets: equal ones in any shape, order where the reference has one, and queries that try to do more than ask."""

import pytest
from gymflow.verifiers.sql_result import SqlResult, SqlResultTask, extract_sql, orders
from pydantic import ValidationError

from gymflow.sandboxes.local.platform import bubblewrap
from gymflow.verifiers import VerifierError

pytestmark = pytest.mark.skipif(isinstance(bubblewrap(), str), reason=str(bubblewrap()))

DATABASE = """
CREATE TABLE town(name TEXT, people INTEGER, area REAL);
INSERT INTO town VALUES ('Ulm', 128, 1.5), ('Bonn', 331, 2.25), ('Jena', 110, NULL), ('Köln', 1087, 4.0);
"""


@pytest.fixture(params=["sqlite", "duckdb"])
def judge(request, score, said):
    def verdict(sql, expected="SELECT name FROM town WHERE people > 120", **row):
        row = {"database": DATABASE, "dialect": request.param, "expected_sql": expected, **row}
        return score(SqlResult, row, said(f"```sql\n{sql}\n```"), {"time_limit_s": 10.0})

    return verdict


def test_equal_rows_in_another_order_and_by_another_query_pass(judge):
    assert judge("SELECT name AS n FROM town WHERE NOT people <= 120 ORDER BY people DESC;").reward == 1.0
    assert judge("SELECT 'Ulm' UNION ALL SELECT 'Bonn'").reason == "2 rows, expected 3"
    assert judge("SELECT name, people FROM town WHERE people > 120").reason == "2 columns, expected 1"


def test_doubled_rows_count(judge):
    assert judge("SELECT name FROM town WHERE people > 120 UNION ALL SELECT 'Ulm'").reward == 0.0
    assert judge("SELECT 1 UNION ALL SELECT 1", "SELECT 1 UNION SELECT 2").reward == 0.0


def test_order_counts_where_the_reference_orders(judge):
    reference = "SELECT name FROM town ORDER BY people"
    assert judge("SELECT name FROM town ORDER BY people ASC", reference).reward == 1.0
    assert judge("SELECT name FROM town ORDER BY people DESC", reference).reward == 0.0
    assert judge("SELECT name FROM town ORDER BY people DESC", reference, ordered=False).reward == 1.0


def test_numbers_nulls_and_types(judge):
    assert judge("SELECT 0.1 + 0.2", "SELECT 0.3").reward == 1.0
    assert judge("SELECT area FROM town", "SELECT area FROM town").reward == 1.0
    assert judge("SELECT '1'", "SELECT 1").reward == 0.0
    assert judge("SELECT NULL", "SELECT 0").reward == 0.0
    assert judge("SELECT avg(people) FROM town", "SELECT sum(people) / 4.0 FROM town").reward == 1.0


def test_faults_of_the_query_are_wrong_answers_with_their_reason(judge):
    assert "no_such" in judge("SELECT no_such FROM town").reason
    assert judge("SELEC 1").reward == 0.0
    assert judge("SELECT 1; SELECT 2", "SELECT 2").reward == 0.0


def test_a_query_cannot_read_files_nor_change_what_is_asked_next(judge):
    for cheat in ("ATTACH '/work/job.json' AS j", "SELECT * FROM read_text('/work/job.json')", "COPY town TO '/work/x'",
                  "DROP TABLE town", "UPDATE town SET people = 0", "SELECT load_extension('x')", "INSTALL httpfs"):  # fmt: skip
        assert judge(cheat).reward == 0.0
    assert judge("SELECT name FROM town WHERE people > 120").reward == 1.0


def test_whole_numbers_have_no_tolerance(judge):
    for wrong, right in ((5_000_004, 5_000_000), (10**18 + 777, 10**18), (2**53, 2**53 + 1), ("5000004.0", 5_000_000), ("5000004.0", "5000000.0")):  # fmt: skip
        assert judge(f"SELECT {wrong}", f"SELECT {right}").reward == 0.0, (wrong, right)
        assert judge(f"SELECT {right}", f"SELECT {right}").reward == 1.0
    assert judge("SELECT 7 * 0.1 * 10", "SELECT 7").reward == judge("SELECT 7", "SELECT 7 * 0.1 * 10").reward == 1.0
    both = "SELECT 12345678 AS a, 'x' AS b UNION ALL SELECT 12345679, 'x'"
    assert judge("SELECT 12345679, 'x' UNION ALL SELECT 12345678, 'x'", both).reward == 1.0
    assert judge("SELECT 12345679, 'x' UNION ALL SELECT 12345679, 'x'", both).reward == 0.0


def test_nothing_but_a_query_of_as_many_columns_equals_an_empty_result(judge):
    reference = "SELECT name, people FROM town WHERE people > 1000000"
    for cheat in ("INSERT INTO town SELECT * FROM town", "CREATE TABLE z(a INT)", "SELECT 1, 2, 3 WHERE 1 = 0", "DELETE FROM town",
                  "SELECT name FROM town WHERE people < 0", "CREATE TEMP TABLE z AS SELECT 1", "BEGIN"):  # fmt: skip
        assert judge(cheat, reference).reward == 0.0, cheat
    assert judge("SELECT people, name FROM town WHERE people < 0", reference).reward == 1.0
    assert (
        judge("WITH big AS (SELECT * FROM town WHERE people < 0) SELECT name, people FROM big", reference).reward == 1.0
    )


def test_a_query_that_does_not_end_is_ended(score, said):
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    row = {"database": DATABASE, "expected_sql": "SELECT 1"}
    verdict = score(SqlResult, row, said(sql), {"time_limit_s": 1.5})
    assert verdict.reward == 0.0 and "1.5 s" in verdict.reason


def test_expected_rows_may_stand_in_the_row(score, said):
    row = {"database": DATABASE, "expected_rows": [["Köln", 1087]]}
    assert score(SqlResult, row, said("SELECT name, people FROM town ORDER BY 2 DESC LIMIT 1"), {}).reward == 1.0
    with pytest.raises(ValidationError):
        SqlResultTask.model_validate({"database": DATABASE})


def test_a_reference_that_fails_is_an_error_and_not_a_wrong_answer(judge):
    with pytest.raises(VerifierError, match="reference"):
        judge("SELECT 1", "SELECT no_such FROM town")


def test_the_query_of_an_answer():
    assert extract_sql("First\n```sql\nSELECT 1;\n```\nthen\n```sql\nSELECT 2;\n```") == "SELECT 2"
    assert extract_sql("with a as (select 1) select * from a;") == "with a as (select 1) select * from a"
    assert extract_sql("I cannot answer.") is None


def test_only_an_outermost_order_counts():
    assert orders("SELECT a FROM t ORDER BY a LIMIT 3")
    assert not orders("SELECT * FROM (SELECT a FROM t ORDER BY a) s")
    assert not orders("SELECT row_number() OVER (ORDER BY a) FROM t -- ORDER BY a")


def test_published_rows_are_read_as_they_are(peer):
    rows = [row["task"] for row in peer("bird_sql") if row["task"]]
    assert rows and all(SqlResultTask.model_validate(row).expected_sql for row in rows)
