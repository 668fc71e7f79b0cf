import numpy as np
import pytest

from fed_mwu import Ends, center_statistic
from fed_mwu.clients.handlers import describe, statistic, table
from fed_mwu.clients.release import release_description, release_statistics, release_tables
from fed_mwu.clients.source import GroupSource
from fed_mwu.errors import Decline, NotPrivate
from fed_mwu.exchange import (
    WITHHELD,
    Counts,
    Description,
    Question,
    Refusal,
    StatisticAnswer,
    TableAnswer,
    TableQuestion,
)
from fed_mwu.ranks import CenterStatistic
from fed_mwu.table import Table


@pytest.fixture
def source(rng):
    nan = np.nan
    return GroupSource(
        "A",
        {
            "fine": {"no": rng.normal(size=40), "yes": rng.normal(size=30)},
            "few": {"no": rng.normal(size=40), "yes": rng.normal(size=9)},
            "one": {"no": rng.normal(size=40)},
            "none": {"no": [nan], "yes": []},
            "missing": {"no": [*rng.normal(size=20), *[nan] * 4], "yes": [*rng.normal(size=20), *[nan] * 11]},
            "text": {"no": ["a"], "yes": ["b"]},
            "infinite": {"no": [*range(20), np.inf], "yes": range(20)},
        },
    )


def ask(*variables, k=10, **options):
    return Question(variables, "group", ("no", "yes"), k=k, **options)


def test_sizes_are_told_or_refused(source):
    found = describe(source, ask("fine", "few", "one", "none", "missing", "text", "unheard"))
    assert found.counts == {
        "fine": Counts((40, 30), (0, 0)),
        "one": Counts((40, 0), (0, 0)),
        # Four missing are fewer than k: not told. Eleven are.
        "missing": Counts((20, 20), (WITHHELD, 11)),
    }
    assert found.refusals == {
        "few": Refusal("below-k", 1),
        "none": Refusal("no-values"),
        "text": Refusal("not-numeric"),
        "unheard": Refusal("unknown-variable"),
    }


def test_statistics_are_those_of_the_core(source):
    found = statistic(source, ask("fine", "few", "one"))
    values = source.values["fine"]
    assert found.statistics == {"fine": center_statistic(values["no"], values["yes"])}
    assert found.refusals == {"few": Refusal("below-k", 1), "one": Refusal("empty-group", 1)}


def test_a_statistic_needs_two_groups(source):
    with pytest.raises(Decline, match="two groups"):
        statistic(source, Question(("fine",), "group", ("no",)))


def test_infinite_values_have_a_rank_but_no_buffer(source):
    question = ask("infinite", ends=Ends.buffer())
    assert "infinite" in statistic(source, question).statistics
    assert table(source, TableQuestion(question, {}))[0].refusals == {"infinite": Refusal("outside-ends")}
    assert "infinite" in table(source, TableQuestion(ask("infinite"), {}))[0].tables


def test_a_center_insists_on_its_own_k(source):
    strict = GroupSource("A", source.values, minimum_k=20)
    for handler in (describe, statistic):
        with pytest.raises(Decline, match="k-too-small"):
            handler(strict, ask("fine", k=19))
    with pytest.raises(Decline, match="k-too-small"):
        table(strict, TableQuestion(ask("fine", k=19), {}))


def test_two_centers_place_limits_differently(source):
    other = GroupSource("B", source.values)
    asked = TableQuestion(ask("fine"), {})
    one, two = table(source, asked)[0].tables["fine"], table(other, asked)[0].tables["fine"]
    assert np.array_equal(one.counts, two.counts)
    assert not np.isin(one.limits[1:-1], two.limits).any()
    assert table(source, asked)[0].tables["fine"] == one


# --- the door: each of these is a mistake that a handler might make one day ---

QUESTION = ask("v")


def small(n, m):
    return CenterStatistic(float(n), float(m), 0.0, n * m * (n + m + 1) / 3)


def test_the_door_keeps_small_sizes_back():
    for counts in (Counts((40, 9), (0, 0)), Counts((40, 30), (3, 0)), Counts((WITHHELD, 40), (0, 0))):
        with pytest.raises(NotPrivate):
            release_description(Description("A", {"v": counts}, {}), QUESTION)


def test_the_door_keeps_statistics_of_few_back():
    for found, missing in ((small(40, 9), (0, 0)), (small(40, 30), (0, 3))):
        with pytest.raises(NotPrivate):
            release_statistics(StatisticAnswer("A", {"v": found}, {"v": missing}, {}), QUESTION)


GOOD = Table([0, 1, 2], [[10, 20], [10, 0]])


@pytest.mark.parametrize(
    ("before", "after", "own"),
    [
        (None, Table([0, 1, 2], [[9, 21], [10, 0]]), GOOD),
        (None, GOOD, Table([0, 1, 2], [[9, 21], [10, 0]])),
        (None, GOOD, Table([0, 2], [[30], [20]])),
        (GOOD, Table([0, 1, 2], [[20, 21], [20, 0]]), Table([0, 2], [[11], [11]])),
        (GOOD, Table([0, 2], [[60], [20]]), Table([0, 2], [[30], [10]])),
        (GOOD, Table([0, 1, 2], [[5, 35], [20, 0]]), Table([0, 2], [[10], [10]])),
    ],
)
def test_the_door_keeps_wrong_tables_back(before, after, own):
    asked = TableQuestion(QUESTION, {"v": before} if before else {})
    with pytest.raises(NotPrivate):
        release_tables(TableAnswer("A", {"v": after}, {}), {"v": own}, asked)


def test_the_door_lets_private_tables_out():
    asked = TableQuestion(QUESTION, {"v": GOOD})
    after = Table([0, 1, 2], [[20, 30], [20, 0]])
    assert release_tables(TableAnswer("A", {"v": after}, {}), {"v": Table([0, 2], [[20], [10]])}, asked)
