import tomllib
from pathlib import Path

import pytest

from fed_mwu import Ends
from fed_mwu.errors import RunConfigError
from fed_mwu.strategies.settings import read_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config():
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["flwr"]["app"]["config"]


def test_the_defaults_are_accepted(config):
    settings = read_settings(config)
    assert (settings.variables, settings.group, settings.groups) == (("thalach",), "disease", ("no", "yes"))
    assert settings.tests == ("table", "weighted", "sum", "fisher")
    assert settings.k == 10


def test_lists_and_limits_are_read(config):
    changed = {"variables": " age , chol", "tests": "van-elteren", "ends": "natural:0:inf", "output": "", "timeout": 5}
    settings = read_settings(config | changed)
    assert settings.variables == ("age", "chol")
    assert settings.ends == Ends.natural(0, float("inf"))
    assert (settings.output, settings.timeout, settings.tests) == (None, 5.0, ("van-elteren",))


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("variables", "", "different names"),
        ("variables", "a,,b", "different names"),
        ("variables", "a,a", "different names"),
        ("group", " ", "name of a column"),
        ("groups", "no", "two different labels"),
        ("groups", "a,b,c", "two different labels"),
        ("groups", "a,a", "two different labels"),
        ("tests", "t-test", "'table', 'weighted', 'sum', 'fisher'"),
        ("alternative", "both", "'two-sided', 'greater', 'less'"),
        ("k", 1, "at least 2"),
        ("k", 10.0, "whole number"),
        ("k", True, "whole number"),
        ("k", "ten", "whole number"),
        ("ends", "shut", "'open', 'buffer', 'natural'"),
        ("ends", "natural", "natural:LOW:HIGH"),
        ("ends", "natural:5:1", "natural:LOW:HIGH"),
        ("ends", "open:1:2", "natural:LOW:HIGH"),
        ("min-centers", 0, "at least 1"),
        ("timeout", 0, "positive"),
        ("timeout", float("inf"), "positive"),
        ("timeout", "soon", "positive"),
        ("tsets", "sum", "no such key"),
    ],
)
def test_a_wrong_value_lists_what_is_accepted(config, key, value, accepted):
    with pytest.raises(RunConfigError, match=key) as caught:
        read_settings(config | {key: value})
    assert accepted in str(caught.value)


def test_all_wrong_values_are_told_at_once(config):
    with pytest.raises(RunConfigError) as caught:
        read_settings(config | {"k": 0, "ends": "x", "alternative": "y"})
    assert all(key in str(caught.value) for key in ("k = 0", "ends = 'x'", "alternative = 'y'"))


def test_a_missing_key_is_told(config):
    del config["k"]
    with pytest.raises(RunConfigError, match="k = None"):
        read_settings(config)
