"""The run config: text and numbers from outside become settings, or a message that lists what is accepted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fed_mwu.errors import RunConfigError
from fed_mwu.limits import ENDS, Ends
from fed_mwu.quantiles import QUANTILE_METHODS, check_probabilities
from fed_mwu.ranks import ALTERNATIVES, Alternative

__all__ = ["ESTIMATORS", "TESTS", "Settings", "read_settings"]

TESTS = ("table", "weighted", "sum", "fisher")
ANALYSES = ("tests", "quantiles")
ESTIMATORS = (*QUANTILE_METHODS, "data", "loss")
WEIGHTED = {"weighted": "optimal", "van-elteren": "van-elteren"}
# Keys that the ClientApp reads, and none of this file's business.
OTHERS = frozenset({"allow-quantile-loss", "data"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the app is to do, checked; the fields are those of the run config (README, "Run config")."""

    analysis: str
    variables: tuple[str, ...]
    group: str
    groups: tuple[str, ...]
    tests: tuple[str, ...]
    alternative: Alternative
    k: int
    ends: Ends
    min_centers: int
    timeout: float
    output: Path | None
    quantiles: tuple[float, ...]
    estimators: tuple[str, ...]


def read_settings(config: Mapping[str, Any]) -> Settings:
    """Check a run config.

    Parameters
    ----------
    config : mapping
        Flower's run config, with all keys that `pyproject.toml` gives defaults for.

    Returns
    -------
    Settings

    Raises
    ------
    RunConfigError
        Naming the key, its value and what is accepted, for all wrong keys at once.
    """
    wrong: list[str] = []

    def read(key: str, parse: Callable[[Any], T], accepted: str) -> T:
        try:
            return parse(config[key])
        except (KeyError, TypeError, ValueError):
            wrong.append(f"{key} = {config.get(key)!r}: accepted is {accepted}")
            return None  # type: ignore[return-value]  # never used: wrong is raised below

    names = "one or several different names, comma-separated"
    many = config.get("analysis") == "quantiles"
    values: dict[str, Any] = {
        "analysis": read("analysis", lambda v: _one_of(v, ANALYSES), f"one of {ANALYSES}"),
        "variables": read("variables", _names, names),
        "group": read("group", str.strip if many else _name, "the name of a column; for quantiles also none"),
        "groups": read(
            "groups",
            _names if many else _pair,
            "two different labels, comma-separated, in the order X,Y; for quantiles one or several",
        ),
        "tests": read("tests", _tests, f"one or several of {TESTS}, comma-separated, or van-elteren for weighted"),
        "alternative": read("alternative", lambda v: _one_of(v, ALTERNATIVES), f"one of {ALTERNATIVES}"),
        "k": read("k", lambda v: _whole(v, 2), "a whole number of at least 2"),
        "ends": read("ends", _ends, f"one of {ENDS}, natural with its limits as natural:LOW:HIGH"),
        "min_centers": read("min-centers", lambda v: _whole(v, 1), "a whole number of at least 1"),
        "timeout": read("timeout", _seconds, "a positive number of seconds"),
        "output": read("output", lambda v: Path(str(v)) if v != "" else None, "a path, or nothing"),
        "quantiles": read("quantiles", _probabilities, "numbers between 0 and 1, comma-separated"),
        "estimators": read("estimators", lambda v: _some_of(v, ESTIMATORS), f"some of {ESTIMATORS}, comma-separated"),
    }
    known = {key.replace("_", "-") for key in values} | OTHERS
    wrong += [f"{key}: there is no such key; keys are {sorted(known)}" for key in config if key not in known]
    if wrong:
        raise RunConfigError("the run config is not accepted. " + "; ".join(wrong))
    if many and not values["group"]:
        values["groups"] = ("all",)
    return Settings(**values)


def _name(value: Any) -> str:
    text = str(value).strip()
    if not text:
        raise ValueError
    return text


def _names(value: Any) -> tuple[str, ...]:
    names = tuple(_name(part) for part in str(value).split(","))
    if len(set(names)) != len(names):
        raise ValueError
    return names


def _pair(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if len(names) != 2:
        raise ValueError
    return names


def _tests(value: Any) -> tuple[str, ...]:
    return _some_of(value, (*TESTS, *WEIGHTED))


def _one_of(value: Any, accepted: tuple[str, ...]) -> str:
    return accepted[accepted.index(value)]


def _some_of(value: Any, accepted: tuple[str, ...]) -> tuple[str, ...]:
    names = _names(value)
    if not set(names) <= set(accepted):
        raise ValueError
    return names


def _probabilities(value: Any) -> tuple[float, ...]:
    return tuple(check_probabilities([float(part) for part in str(value).split(",")]).tolist())


def _whole(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError
    return float(value)


def _ends(value: Any) -> Ends:
    name, *limits = str(value).split(":")
    if name == "natural":
        low, high = limits
        return Ends.natural(float(low), float(high))
    if limits or name not in ENDS:
        raise ValueError
    return Ends(name)  # type: ignore[arg-type]
