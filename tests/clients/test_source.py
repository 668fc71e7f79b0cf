import csv
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from fed_mwu.clients.source import DEFAULT_MINIMUM_K, ColumnSource, demo_sources, open_source
from fed_mwu.errors import Decline

CSV = "value,arm,note\n1.5,0,a\n?,1,b\n2,1.0,c\n NA ,0,d\n-3,2,e\n"


def context(node=None, run=None):
    return Context(run_id=1, node_id=2, node_config=node or {}, state=RecordDict(), run_config=run or {})


@pytest.fixture
def folder(tmp_path):
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text(CSV, encoding="utf-8")
    return tmp_path


def simulated(number, run=None):
    return open_source(context({"partition-id": number, "num-partitions": 4}, run))


def test_the_demo_is_the_published_data():
    # Sizes as in the files of the UCI repository; sums over columns guard against a slip in carrying them over.
    found = {source.name: source for source in demo_sources()}
    sizes = {name: len(source.columns["age"]) for name, source in found.items()}
    assert sizes == {"Cleveland": 303, "Hungarian": 294, "Switzerland": 123, "VA Long Beach": 200}
    assert sum(v or 0 for v in found["Cleveland"].columns["thalach"]) == 45331
    assert {name: source.columns["disease"].count("no") for name, source in found.items()} == {
        "Cleveland": 164,
        "Hungarian": 188,
        "Switzerland": 8,
        "VA Long Beach": 51,
    }
    for source in found.values():
        assert all(
            (n > 0) == (d == "yes") for n, d in zip(source.columns["num"], source.columns["disease"], strict=True)
        )


def test_a_partition_is_a_demo_center():
    assert [simulated(i).name for i in range(4)] == ["Cleveland", "Hungarian", "Switzerland", "VA Long Beach"]
    with pytest.raises(Decline, match="4 centers"):
        simulated(4)


def test_a_partition_is_a_file_of_the_folder_that_the_run_names(folder):
    source = simulated(1, {"data": str(folder)})
    assert source.name == "south"
    with pytest.raises(Decline, match="fewer CSV files"):
        simulated(2, {"data": str(folder)})


def test_labels_and_missing_values(folder):
    zero, one = simulated(0, {"data": str(folder)}).groups("value", "arm", ("0.0", "1"))
    assert np.array_equal(zero, [1.5, np.nan], equal_nan=True)
    assert np.array_equal(one, [np.nan, 2], equal_nan=True)


def test_a_label_may_stand_for_several(folder):
    source = simulated(0, {"data": str(folder)})
    both, none = source.groups("value", "arm", ("0|2", "7|8"))
    assert np.array_equal(both, [1.5, np.nan, -3], equal_nan=True)
    assert none.size == 0
    assert source.groups("value", "", ("all",))[0].size == 5
    odd = ColumnSource("odd", {"v": ["1", "2", "3"], "g": ["a|b", "a", "b"]}, b"")
    assert [group.tolist() for group in odd.groups("v", "g", ("a|b", "a"))] == [[1], [2]]


@pytest.mark.parametrize(
    ("variable", "column", "code"),
    [("age", "arm", "unknown-variable"), ("value", "sex", "unknown-group"), ("note", "arm", "not-numeric")],
)
def test_unknown_columns_are_typed_declines(folder, variable, column, code):
    with pytest.raises(Decline) as caught:
        simulated(0, {"data": str(folder)}).groups(variable, column, ("0", "1"))
    assert caught.value.code == code


def test_a_deployed_node_reads_what_its_operator_names(folder, tmp_path):
    node = {"data": str(folder / "north.csv"), "name": "North", "secret": str(tmp_path / "secret")}
    source = open_source(context(node))
    assert (source.name, source.minimum_k) == ("North", DEFAULT_MINIMUM_K)
    assert source.secret == (tmp_path / "secret").read_bytes()
    assert open_source(context({**node, "min-k": 25})).minimum_k == 25
    # Only the operator allows the quantile loss, and only by saying true: a run config does not.
    assert not open_source(context(node, {"allow-quantile-loss": True})).allow_quantile_loss
    assert not open_source(context({**node, "allow-quantile-loss": "no"})).allow_quantile_loss
    assert open_source(context({**node, "allow-quantile-loss": True})).allow_quantile_loss


def test_a_path_in_the_run_config_is_not_looked_at_on_a_deployed_node(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "own.csv").write_text("value,arm\n7,0\n", encoding="utf-8")
    node = {"data": str(elsewhere / "own.csv"), "secret": str(tmp_path / "secret")}
    source = open_source(context(node, {"data": str(folder)}))
    assert source.columns["value"] == ["7"]
    # Not even for a node that looks simulated, if its operator has named data.
    source = open_source(context({**node, "partition-id": 0, "num-partitions": 2}, {"data": str(folder)}))
    assert source.columns["value"] == ["7"]
    with pytest.raises(Decline) as caught:
        open_source(context({}, {"data": str(folder)}))
    assert caught.value.code == "no-data"


@pytest.mark.parametrize("content", ["", "a,b\n1\n", "a,a\n1,2\n", b"\xff\xfe\x00"])
def test_a_file_that_is_no_table_is_a_typed_decline(tmp_path, content):
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Decline) as caught:
        open_source(context({"data": str(path), "secret": str(tmp_path / "secret")}))
    assert caught.value.code == "no-data"
    assert str(tmp_path) not in str(caught.value)


def test_the_demo_is_the_original_files():
    shared = Path(__file__).parents[3] / "shared" / "data" / "heart"
    if not shared.exists():
        pytest.skip("the original files are not beside the project")
    files = {"Cleveland": "cleveland", "Hungarian": "hungarian", "Switzerland": "switzerland", "VA Long Beach": "va"}
    for source in demo_sources():
        with (shared / f"{files[source.name]}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for name in rows[0]:
            assert source.columns[name] == [None if row[name] == "?" else float(row[name]) for row in rows]
