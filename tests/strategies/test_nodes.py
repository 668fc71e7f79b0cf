import pytest

from fed_mwu.simulations import Federation
from fed_mwu.simulations.local import LocalGrid
from fed_mwu.strategies import nodes


class Slow(LocalGrid):
    """A grid whose nodes appear one after the other."""

    def __init__(self, steps):
        self.steps = iter(steps)
        self.current = next(self.steps)

    def get_nodes(self):
        self._names = {i: f"site {i}" for i in range(self.current)}
        self.current = next(self.steps, self.current)
        return super().get_nodes()


@pytest.fixture
def clock(monkeypatch):
    """Time passes only by sleeping."""
    monkeypatch.setattr(nodes.time, "monotonic", lambda: float(clock.now))
    clock = type("Clock", (), {"now": 0.0})()
    monkeypatch.setattr(nodes.time, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds))
    return clock


def test_it_waits_for_the_nodes_that_come_late(clock):
    found = nodes.wait_for_nodes(Slow([0, 0, 1, 1, 2, 2, 4]), at_least=1, settle=1.0, timeout=60)
    assert len(found) == 4
    assert clock.now < 3


def test_it_gives_up_in_the_end(clock):
    assert len(nodes.wait_for_nodes(Slow([0, 1]), at_least=3, settle=1.0, timeout=60)) == 1
    assert 60 <= clock.now < 61


def test_it_does_not_wait_where_nothing_can_change(clock):
    grid = Federation({"A": {"x": [1], "y": [2]}}).grid()
    assert len(nodes.wait_for_nodes(grid, at_least=1, settle=0.0, timeout=60)) == 1
    assert clock.now == 0


def test_names_are_made_printable_and_distinct():
    assert nodes.printable("  a\x1b[31m\nb ") == "a[31mb"
    assert len(nodes.printable("x" * 500)) == nodes.LONGEST_NAME
    assert nodes.distinct("A", ["A", "A (2)"]) == "A (3)"
    assert sorted(["site 10", "site 2", "a", "2"], key=nodes.natural_order) == ["a", "site 2", "site 10", "2"]
