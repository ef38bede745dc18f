"""CSV datasets."""

from pathlib import Path

import pytest

from gymflow.datasets.table import read_csv, split_list
from gymflow.errors import InputError
from tests.support.cases import fault


def written(tmp_path: Path, content: str) -> Path:
    file = tmp_path / "rows.csv"
    file.write_text(content, newline="")
    return file


def test_ds_ragged_csv(tmp_path: Path) -> None:
    first, second = read_csv(written(tmp_path, fault("ds-ragged-csv")["csv"]))
    assert (first.number, first.fault) == (2, "2 cells, but the header names 3 columns")
    assert (second.number, second.fault) == (3, "4 cells, but the header names 3 columns")


def test_ds_choices_trailing_comma(tmp_path: Path) -> None:
    choices = fault("ds-choices-trailing-comma")["choices"]
    assert split_list(choices) == ["red", "blue"]
    [line] = read_csv(written(tmp_path, f'question,choices[]\nWhich?,"{choices}"\n'))
    assert line.value == {"question": "Which?", "choices": ["red", "blue"]}


def test_cells_may_span_lines_and_a_fault_names_the_line_a_row_begins_in(tmp_path: Path) -> None:
    lines = list(read_csv(written(tmp_path, '\ufeffid,prompt\r\n1,"two\nlines"\r\n\r\n2\r\n')))
    assert [(line.number, line.value) for line in lines] == [(2, {"id": "1", "prompt": "two\nlines"}), (5, None)]


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "must name the columns"), ("a,,b\n", "a column has no name"), ("a,b,a\n", "'a' occurs twice")],
)
def test_a_header_that_names_no_columns_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"rows\.csv:1: .*{message}"):
        list(read_csv(written(tmp_path, content)))


def test_an_open_quote_is_a_fault_of_its_line(tmp_path: Path) -> None:
    [line] = read_csv(written(tmp_path, 'a\n"open'))
    assert line.number == 2 and "not CSV" in (line.fault or "")
