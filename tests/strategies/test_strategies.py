"""The strategies against honest, failing and lying centers."""

import math

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, RecordDict
from flwr.serverapp.strategy import Result, Strategy

from fed_mwu import (
    Ends,
    Table,
    bin_center,
    center_statistic,
    combined_test,
    fisher_test,
    join_center,
    sum_test,
    table_test,
    weighted_test,
)
from fed_mwu.clients.handlers import column_key
from fed_mwu.errors import InvalidReply, TooFewCenters
from fed_mwu.exchange import Counts
from fed_mwu.record_messages import encode_decline
from fed_mwu.simulations import Federation
from fed_mwu.simulations.local import LocalGrid, identity
from fed_mwu.strategies import FisherMWU, SequentialTable, SumMWU, WeightedMWU

ALL = (SequentialTable, SumMWU, WeightedMWU, FisherMWU)
SIZES = {"A": (120, 90), "B": (60, 70), "C": (40, 30)}


@pytest.fixture
def values(rng):
    return {
        name: {"no": rng.normal(size=n).round(2), "yes": rng.normal(0.3, size=m).round(2)}
        for name, (n, m) in SIZES.items()
    }


@pytest.fixture
def federation(values):
    return Federation(values, k=10)


def test_center_tests_are_the_core_on_the_centers_statistics(federation, values):
    centers = [center_statistic(v["no"], v["yes"]) for v in values.values()]
    for strategy, expected in (
        (SumMWU(), sum_test(centers)),
        (WeightedMWU(), weighted_test(centers)),
        (
            WeightedMWU(weights="van-elteren", alternative="greater"),
            weighted_test(centers, weights="van-elteren", alternative="greater"),
        ),
        (FisherMWU(alternative="less"), fisher_test(centers, alternative="less")),
    ):
        result = federation.run(strategy)
        assert result.test == expected
        assert result.rounds == 1


def test_the_table_is_the_core_joining_one_center_after_the_other(federation, values):
    result = federation.run(SequentialTable())
    table = None
    for name, groups in values.items():  # in the order of their sizes
        source = next(source for source in federation._sources.values() if source.name == name)
        options = {"k": 10, "key": column_key(source, "value")}
        arrays = list(groups.values())
        table = bin_center(arrays, **options) if table is None else join_center(table, arrays, **options)
    assert result.tables["value"] == table
    assert result.test == table_test(table)
    assert result.rounds == 1 + len(values)


def test_one_center_alone_is_the_combined_test(values):
    alone = Federation({"A": values["A"]}, k=10)
    combined = combined_test(values["A"]["no"], values["A"]["yes"])
    for strategy in (SumMWU(), WeightedMWU(), WeightedMWU(weights="van-elteren")):
        assert alone.run(strategy).test.pvalue == pytest.approx(combined.pvalue, rel=1e-12)
    table = alone.run(SequentialTable()).test
    assert table.statistic == pytest.approx(combined.statistic, abs=0.15)


def test_identical_centers_add_up(values):
    federation = Federation(dict.fromkeys("ABCDE", values["A"]), k=10)
    table = federation.run(SequentialTable()).tables["value"]
    assert table.sizes == pytest.approx([600, 450], rel=1e-9)


@pytest.mark.parametrize("strategy", ALL)
def test_two_hundred_variables_take_the_rounds_of_one(rng, strategy):
    names = [f"gene {i}" for i in range(200)]
    many = {center: {name: {"x": rng.normal(size=30), "y": rng.normal(size=25)} for name in names} for center in "ABC"}
    one = {center: {names[7]: groups[names[7]]} for center, groups in many.items()}
    all_at_once, alone = Federation(many, k=10).run(strategy()), Federation(one, k=10).run(strategy())
    assert all_at_once.rounds == alone.rounds
    assert len(all_at_once.tests) == 200
    assert all_at_once.tests[names[7]] == alone.tests[names[7]]


@pytest.mark.parametrize("strategy", ALL)
def test_flowers_own_loop_gives_the_same(federation, strategy):
    expected = federation.run(strategy())
    ours = strategy(variables=["value"], group="group", groups=("no", "yes"), k=10, settle=0)
    assert isinstance(ours, Strategy)
    with identity():
        flowers = Strategy.start(ours, federation.grid(), ArrayRecord(), num_rounds=6)
    assert isinstance(flowers, Result)
    assert ours.result().tests == expected.tests
    assert ours.result().rounds == expected.rounds


@pytest.mark.parametrize("strategy", ALL)
def test_start_needs_a_grid_only_and_can_be_repeated(federation, strategy):
    ours = strategy(variables=["value"], group="group", groups=("no", "yes"), settle=0)
    with identity():
        first, second = ours.start(grid=federation.grid()), ours.start(grid=federation.grid())
    assert isinstance(first, Result)
    assert first.analysis.tests == second.analysis.tests
    assert "superiority" in first.summary()
    assert "<table>" in first._repr_html_()


def test_the_final_table_is_in_flowers_arrays(federation):
    ours = SequentialTable(variables=["value"], group="group", groups=("no", "yes"), settle=0)
    with identity():
        result = ours.start(grid=federation.grid())
    assert np.array_equal(result.arrays["limits"].numpy(), result.analysis.tables["value"].limits)


def test_a_center_below_k_declines_without_sizes(values):
    values["D"] = {"no": [1.0] * 9, "yes": [2.0] * 50}
    for strategy in ALL:
        result = Federation(values, k=10).run(strategy())
        part = result.centers[3].variables["value"]
        assert (part.status, part.reason) == ("declined", 'group "no" has fewer than 10 values')
        assert (part.sizes, part.missing, part.statistic) == (None, None, None)
        assert result.tests.keys() == {"value"}
        assert "50" not in result.summary().split("D ")[1].splitlines()[0]


def test_variables_fail_one_by_one(values):
    nested = {name: {"good": groups, "bad": {"no": groups["no"], "yes": [1.0]}} for name, groups in values.items()}
    for strategy in ALL:
        result = Federation(nested, k=10).run(strategy(min_centers=2))
        assert result.tests.keys() == {"good"}
        assert result.failures == {"bad": "0 of at least 2 centers took part"}


def test_too_few_centers_is_an_error_that_keeps_what_there_is(values):
    values["B"]["yes"] = [1.0]
    for strategy in ALL:
        with pytest.raises(TooFewCenters, match="min_centers=3") as caught:
            Federation(values, k=10).run(strategy(min_centers=3))
        assert 'B declined (group "yes" has fewer than 10 values)' in str(caught.value)
        assert next(c.variables["value"].status for c in caught.value.result.centers) == "took part"


def test_one_group_gives_a_table_and_no_test(rng):
    result = Federation({"A": {"all": rng.normal(size=50)}, "B": {"all": rng.normal(size=40)}}, k=10).run(
        SequentialTable()
    )
    assert result.tables["value"].sizes == pytest.approx([90])
    assert result.tests == {}
    with pytest.raises(ValueError, match="no tests: it takes two groups"):
        _ = result.test


def test_ends_travel(values):
    federation = Federation(values, k=10)
    assert np.isfinite(federation.run(SequentialTable(ends=Ends.buffer())).tables["value"].limits).all()
    natural = federation.run(SequentialTable(ends=Ends.natural(-10, 10))).tables["value"]
    assert natural.limits[[0, -1]].tolist() == [-10, 10]
    with pytest.raises(TooFewCenters, match="outside the ends"):
        federation.run(SequentialTable(ends=Ends.natural(0, 10)))


# --- what can go wrong on the way ---


class FaultyGrid(LocalGrid):
    """Lets one center's replies to one action be spoiled."""

    def __init__(self, federation, name, action, spoil):
        super().__init__(federation._app, {i: s.name for i, s in federation._sources.items()})
        self._victim = next(i for i, s in federation._sources.items() if s.name == name)
        self._action = f"query.{action}"
        self._spoil = spoil

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        for message, reply in zip(messages, super().send_and_receive(messages, timeout=timeout), strict=True):
            if message.metadata.dst_node_id == self._victim and message.metadata.message_type == self._action:
                reply = self._spoil(message, reply)
            if reply is not None:
                replies.append(reply)
        return replies


def run_faulty(federation, strategy, action, spoil, *, name="B", **options):
    ours = strategy(variables=["value"], group="group", groups=("no", "yes"), k=10, settle=0, **options)
    with identity():
        return ours.start(grid=FaultyGrid(federation, name, action, spoil)).analysis


def change(record, **arrays):
    def spoil(message, reply):
        for key, alter in arrays.items():
            reply.content[record][key] = Array(alter(reply.content[record][key].numpy().copy()))
        return reply

    return spoil


def put(index, value):
    def alter(array):
        array[index] = value
        return array

    return alter


def error(code):
    return lambda message, reply: Message(Error(code, "Traceback: patient 4711"), reply_to=message)


FAULTS = {
    "no reply": (lambda message, reply: None, "timed out", "no reply within"),
    "crash": (error(2), "failed", "its app failed"),
    "node gone": (error(5), "failed", "the node is not available"),
    "unknown error": (error(99), "failed", "Flower's error 99"),
    "empty reply": (lambda message, reply: Message(RecordDict(), reply_to=message), "excluded", "no answer"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("strategy", "action"),
    [(SequentialTable, "describe"), (SequentialTable, "table"), (SumMWU, "statistic"), (FisherMWU, "statistic")],
)
def test_a_failing_center_is_left_out_and_named(federation, values, strategy, action, fault):
    spoil, status, reason = FAULTS[fault]
    result = run_faulty(federation, strategy, action, spoil)
    parts = {center.name: center.variables["value"] for center in result.centers}
    victim = parts.pop(next(name for name in parts if name == "B" or name.startswith("node")))
    assert victim.status == status
    assert reason in victim.reason
    assert "4711" not in victim.reason
    assert {part.status for part in parts.values()} == {"took part"}
    without = Federation({name: values[name] for name in "AC"}, k=10)
    assert result.test == without.run(strategy()).test


LIES = {
    "u above nm": ("statistics", put((0, 2), 1e9)),
    "negative variance": ("statistics", put((0, 3), -1.0)),
    "variance too large": ("statistics", put((0, 3), 1e9)),
    "variance too small for u": ("statistics", put((0, 3), 1e-9)),
    "NaN": ("statistics", put((0, 2), math.nan)),
    "half a patient": ("statistics", put((0, 0), 60.5)),
    "fewer than k": ("statistics", put((0, slice(0, 4)), [5, 5, 0, 50])),
    "few missing": ("missing", put((0, 0), 3)),
    "unknown refusal": ("refused", put((0, 0), 1000)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_center_that_lies_about_its_statistic_is_excluded(federation, values, lie):
    key, alter = LIES[lie]
    result = run_faulty(federation, SumMWU, "statistic", change("values", **{key: alter}))
    statuses = sorted(center.variables["value"].status for center in result.centers)
    assert statuses == ["excluded", "took part", "took part"]
    assert result.test == Federation({name: values[name] for name in "AC"}, k=10).run(SumMWU()).test


TABLE_LIES = {
    "counts too many": change("tables", counts=lambda c: c * 2),
    "counts too few": change("tables", counts=lambda c: c * 0.9),
    "counts moved": change("tables", counts=lambda c: c[::-1].copy()),
    "NaN": change("tables", counts=lambda c: c * math.nan),
    "a limit moved": change("tables", limits=lambda x: np.where(np.isfinite(x), x + 1e-9, x)),
    "limits unsorted": change("tables", limits=lambda x: x[::-1].copy()),
    "an end moved in": change("tables", limits=put(0, -1e9)),
    "another center's reply": change("values", refused=put((0, 0), 1)),
}


@pytest.mark.parametrize("lie", TABLE_LIES)
@pytest.mark.parametrize("name", ["B", "C"])
def test_a_center_that_lies_in_the_table_is_excluded(federation, values, lie, name):
    result = run_faulty(federation, SequentialTable, "table", TABLE_LIES[lie], name=name)
    statuses = {center.name: center.variables["value"].status for center in result.centers}
    assert statuses.pop(name) == "excluded"
    assert set(statuses.values()) == {"took part"}
    without = Federation({other: values[other] for other in "ABC" if other != name}, k=10)
    assert result.tables["value"] == without.run(SequentialTable()).tables["value"]


@pytest.mark.parametrize("lie", ["counts too many", "counts too few", "NaN", "limits unsorted"])
def test_the_first_center_is_checked_too(federation, values, lie):
    result = run_faulty(federation, SequentialTable, "table", TABLE_LIES[lie], name="A")
    without = Federation({name: values[name] for name in "BC"}, k=10).run(SequentialTable())
    assert result.tables["value"] == without.tables["value"]


def test_a_center_that_announces_a_small_size_is_excluded(federation):
    for alter in (put((0, 0), 5), put((0, 0), -1)):
        result = run_faulty(federation, SequentialTable, "describe", change("values", sizes=alter))
        assert sorted(c.variables["value"].status for c in result.centers) == ["excluded", "took part", "took part"]


def test_a_center_that_declines_when_its_turn_comes(federation, values):
    spoil = lambda message, reply: Message(encode_decline("B", "internal-error"), reply_to=message)  # noqa: E731
    result = run_faulty(federation, SequentialTable, "table", spoil)
    part = next(center for center in result.centers if center.name == "B").variables["value"]
    assert (part.status, part.reason) == ("declined", "the center failed; its own log says why")


def test_replies_in_any_order_and_twice_are_matched_by_message(federation):
    class Shuffling(LocalGrid):
        def send_and_receive(self, messages, *, timeout=None):
            replies = super().send_and_receive(messages, timeout=timeout)
            return iter(replies[::-1] + replies[:1])

    ours = SumMWU(variables=["value"], group="group", groups=("no", "yes"), k=10, settle=0)
    with identity():
        grid = Shuffling(federation._app, {i: s.name for i, s in federation._sources.items()})
        assert ours.start(grid=grid).analysis.test == federation.run(SumMWU()).test


def test_names_are_the_operators_or_the_centers_own(federation):
    ours = SumMWU(variables=["value"], group="group", groups=("no", "yes"), k=10, settle=0)
    with identity():
        registered = LocalGrid(federation._app, {2: "Hospital 1", 3: "Hospital 1", 4: ""})
        names = [center.name for center in ours.start(grid=registered).analysis.centers]
    assert names == ["C", "Hospital 1", "Hospital 1 (2)"]


# --- arguments ---


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"alternative": "both"}, "'two-sided', 'greater', 'less'"),
        ({"min_centers": 0}, "min_centers must be"),
        ({"timeout": 0}, "timeout must be"),
        ({"variables": "age", "group": "g", "groups": ("a", "b")}, "sequence of names"),
        ({"variables": [], "group": "g", "groups": ("a", "b")}, "at least one"),
        ({"variables": ["v"], "group": "", "groups": ("a", "b")}, "1 to 200 characters"),
        ({"variables": ["v"], "group": "g", "groups": ("a", "a")}, "differ"),
        ({"variables": ["v"], "group": "g", "groups": ("a", "b"), "k": 0}, "k must be at least 1"),
        ({"variables": ["v"], "group": "g", "groups": ("a", "b"), "ends": "open"}, "ends must be"),
    ],
)
@pytest.mark.parametrize("strategy", ALL)
def test_wrong_options_are_told_at_once(strategy, options, rule):
    with pytest.raises((ValueError, TypeError), match=rule):
        strategy(**options)


def test_wrong_weights_are_told_at_once():
    with pytest.raises(ValueError, match="'optimal', 'van-elteren'"):
        WeightedMWU(weights="equal")


def test_a_run_without_a_question_says_what_it_needs(federation):
    with pytest.raises(ValueError, match="group, groups, variables: give them to SumMWU"):
        SumMWU().start(grid=federation.grid())


@pytest.mark.parametrize("strategy", [SumMWU, WeightedMWU, FisherMWU])
def test_a_rank_test_needs_two_groups(strategy):
    three = Federation({"A": {"x": range(20), "y": range(20), "z": range(20)}})
    with pytest.raises(ValueError, match="two groups, X and Y"):
        three.run(strategy())
    assert three.run(strategy(groups=("z", "x"))).pvalue == 1
    assert three.run(SequentialTable()).table.n_groups == 3


def test_the_server_wants_each_cell_of_a_joined_table_private():
    strategy = SequentialTable(variables=["v"], group="g", groups=("a", "b"), k=10)
    strategy._tables["v"] = Table([0, 2], [[20], [20]])
    strategy._check("v", Table([0, 1, 2], [[30, 10], [30, 10]]), Counts((20, 20), (0, 0)), 10)
    with pytest.raises(InvalidReply, match="between 0 and k"):
        strategy._check("v", Table([0, 1, 2], [[35, 5], [35, 5]]), Counts((20, 20), (0, 0)), 10)


@pytest.mark.parametrize("strategy", [SequentialTable, SumMWU, WeightedMWU, FisherMWU])
def test_the_order_of_the_centers_does_not_show_in_a_single_bit(values, strategy):
    there, back = Federation(values).run(strategy()), Federation(dict(reversed(values.items()))).run(strategy())
    assert (there.statistic, there.log_pvalue, there.superiority) == (back.statistic, back.log_pvalue, back.superiority)
    assert there.confidence_interval() == pytest.approx(back.confidence_interval(), rel=1e-12)
    assert there.summary() == back.summary()


def test_an_answer_that_breaks_the_reading_excludes_its_center_only(federation, values, monkeypatch):
    def fail(self, request, content):
        if request.center.name == "B":
            raise ZeroDivisionError("4711")
        return receive(self, request, content)

    receive = SumMWU._receive
    monkeypatch.setattr(SumMWU, "_receive", fail)
    result = federation.run(SumMWU())
    assert [(c.status, c.reason) for c in result.centers][1] == ("excluded", "its answer could not be read")
    assert result.test == Federation({name: values[name] for name in "AC"}).run(SumMWU()).test
