import numpy as np
import pytest
from flwr.supercore.task_identity import TaskIdentity

from fed_mwu.simulations import Federation
from fed_mwu.strategies import SequentialTable, SumMWU

GROUPS = {"no": range(20), "yes": range(5, 30)}


def test_what_is_left_out_comes_from_the_federation():
    result = Federation({"A": GROUPS, "B": GROUPS}, k=7).run(SumMWU())
    assert (result.question.variables, result.question.groups, result.question.k) == (("value",), ("no", "yes"), 7)


def test_what_is_given_stays():
    nested = {"A": {"u": GROUPS, "v": GROUPS}}
    result = Federation(nested, k=5).run(SumMWU(variables=["v"], groups=("yes", "no"), k=20))
    assert (result.question.variables, result.question.groups, result.question.k) == (("v",), ("yes", "no"), 20)
    assert result.test.superiority < 0.5


def test_a_run_leaves_no_trace_and_repeats_itself():
    before = TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id
    federation = Federation({"A": GROUPS, "B": GROUPS}, k=5)
    one, two = federation.run(SequentialTable()), federation.run(SequentialTable())
    assert (TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id) == before
    assert one.tables == two.tables
    assert one.summary() == two.summary()


def test_the_values_are_not_changed(rng):
    values = rng.normal(size=50)
    kept = values.copy()
    Federation({"A": {"x": values, "y": values}}, k=5).run(SequentialTable())
    assert np.array_equal(values, kept)


@pytest.mark.parametrize("centers", [{}, {"A": []}, {"A": {}}, {"A": {"v": GROUPS, "no": [1, 2]}}])
def test_centers_that_are_none_are_refused(centers):
    with pytest.raises((ValueError, TypeError), match="center"):
        Federation(centers)


@pytest.mark.parametrize("k", [0, 2.5, "ten"])
def test_a_wrong_k_is_told_at_once(k):
    with pytest.raises((ValueError, TypeError), match="k must be"):
        Federation({"A": GROUPS}, k=k)


def test_a_single_variable_needs_no_name():
    result = Federation({"A": GROUPS, "B": {"no": [1], "yes": range(9)}}, k=5).run(SequentialTable())
    assert result.table is result.tables["value"]
    assert (result.statistic, result.pvalue, result.log_pvalue) == (*result.test, result.test.log_pvalue)
    assert result.superiority == result.test.superiority
    assert result.confidence_interval(0.9) == result.test.confidence_interval(0.9)
    assert [(c.name, c.status) for c in result.centers] == [("A", "took part"), ("B", "declined")]
    assert result.centers[1].reason == 'group "no" has fewer than 5 values'


def test_several_variables_need_their_names():
    result = Federation({"A": {"u": GROUPS, "v": GROUPS, "w": {"no": [1], "yes": [1]}}}, k=5).run(SequentialTable())
    for single in ("table", "test", "pvalue"):
        with pytest.raises(ValueError, match="3 variables"):
            getattr(result, single)
    assert result.centers[0].status == "took part"
    assert result.centers[0].reason == 'group "no" has fewer than 5 values'
