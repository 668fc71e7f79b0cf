import json

import pytest

from fed_mwu.report import as_dict, as_html, as_json, as_text
from fed_mwu.simulations import Federation
from fed_mwu.strategies import FisherMWU, SequentialTable, SumMWU

GROUPS = {"no": range(40), "yes": range(5, 45)}


@pytest.fixture
def results():
    centers = {"A": GROUPS, "B": GROUPS, "C<C>": {"no": range(3), "yes": range(40)}}
    federation = Federation({name: {"bmi & co": groups} for name, groups in centers.items()}, k=10)
    return [federation.run(strategy) for strategy in (SequentialTable(), SumMWU(), FisherMWU())]


def test_text_lines_up(results):
    lines = as_text(results).splitlines()
    assert lines[0] == "bmi & co by group (X = no, Y = yes), k = 10, two-sided"
    header = next(line for line in lines if line.startswith("center"))
    rows = [line for line in lines if line.startswith(("A ", "B ", "C<C>"))]
    assert [row.index("took") for row in rows[:2]] == [header.index("status")] * 2
    assert 'declined: group "no" has fewer than 10 values' in rows[2]
    assert [line.split()[0] for line in lines if line.startswith(("table ", "sum ", "fisher "))] == [
        "table",
        "sum",
        "fisher",
    ]
    assert "table: 3 rounds" in lines[-1]


def test_html_is_escaped(results):
    text = as_html(results)
    assert "C&lt;C&gt;" in text
    assert "bmi &amp; co" in text
    assert "<C>" not in text


def test_json_holds_the_same_numbers(results):
    found = json.loads(as_json(results))
    assert found == as_dict(results)
    variable = found["variables"]["bmi & co"]
    assert [test["method"] for test in variable["tests"]] == ["table", "sum", "fisher"]
    assert variable["tests"][1]["pvalue"] == results[1].test.pvalue
    assert variable["centers"][0]["sizes"] == [40, 40]
    assert variable["centers"][2] == {
        "center": "C<C>",
        "status": 'declined: group "no" has fewer than 10 values',
        "sizes": None,
        "missing": None,
        "u": None,
        "variance": None,
        "superiority": None,
        "log_pvalue": None,
    }
    assert variable["table"]["limits"][0] == "-Infinity"


def test_a_small_count_of_missing_values_is_null():
    values = {"no": [*range(20), float("nan")], "yes": range(20)}
    found = as_dict([Federation({"A": values}, k=10).run(SumMWU())])
    assert found["variables"]["value"]["centers"][0]["missing"] == [None, 0]


def test_centers_that_differ_between_analyses_say_so(results):
    lonely = Federation({"A": {"bmi & co": GROUPS}, "B": {"bmi & co": {"no": [], "yes": range(40)}}}, k=10)
    text = as_text([lonely.run(SequentialTable()), lonely.run(SumMWU())])
    assert 'took part (table); declined: group "no" has no values (sum)' in text


def test_failures_and_notes_are_told():
    up, down = {"no": range(20), "yes": range(15, 35)}, {"no": range(15, 35), "yes": range(20)}
    nested = {"A": {"v": up, "w": up}, "B": {"v": down, "w": {"no": [1], "yes": [1]}}}
    text = as_text([Federation(nested, k=10).run(FisherMWU(min_centers=2))])
    assert "fisher: centers point in opposite directions" in text
    assert "fisher: no result, 1 of at least 2 centers took part" in text
