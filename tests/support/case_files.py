"""Read the cases that come with the tests."""

import json
from pathlib import Path

import numpy as np

CASES = Path(__file__).parents[1] / "cases"


def read_cases(name):
    return json.loads((CASES / name).read_text(encoding="utf-8"))


def decode(values):
    """Read a list of a case: run-length code, ranges, and the texts that stand for what JSON cannot write."""
    if isinstance(values, dict):
        if "rle" in values:
            return [value for value, count in values["rle"] for _ in range(count)]
        return list(range(*values["range"]))
    special = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    return [special.get(value, value) if isinstance(value, str) else value for value in values]
