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
