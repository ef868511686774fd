"""The schema: statistics by hand, and every planted difference is named."""

import copy
import json
import re

import numpy as np
import pytest

from pipelines.steps.schema_gen import compare_schemas, describe_split
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.materialized import Examples

SPACE = FactorSpace((Factor("x", 4, 0, 3), Factor("y", 4, 0, 3)))
FACTORS = np.array([[0, 3], [1, np.nan], [1, 2]], np.float32)
IMAGES = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 2, 2, 1)


@pytest.fixture
def split() -> dict:
    return describe_split(Examples(FACTORS, IMAGES), SPACE)


def test_statistics(split: dict) -> None:
    assert split["examples"] == 3
    assert split["image"]["shape"] == [2, 2, 1]
    assert split["image"]["dtype"] == "float32"
    assert split["image"]["mean"] == pytest.approx(0.5)
    assert split["image"]["std"] == pytest.approx(np.std(IMAGES))
    assert split["factors"]["x"] == {
        "dtype": "float32",
        "absent": 0,
        "distinct": 2,
        "min": 0.0,
        "max": 1.0,
    }
    y = split["factors"]["y"]
    assert (y["absent"], y["distinct"], y["min"], y["max"]) == (1, 2, 2, 3)


def test_split_without_examples() -> None:
    empty = Examples(FACTORS[:0], IMAGES[:0])
    split = json.loads(json.dumps(describe_split(empty, SPACE)))
    assert split["examples"] == 0 and "min" not in split["image"]


def test_same_examples_have_no_differences(split: dict) -> None:
    schema = {"data": {"train": split}}
    again = json.loads(json.dumps(schema))
    assert not list(compare_schemas(again, schema))
    # The last bit of a mean may differ between processors.
    again["data"]["train"]["image"]["mean"] *= 1 + 1e-7
    assert not list(compare_schemas(again, schema))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("examples", 2, "examples is 3, the schema says 2"),
        ("image/shape", [2, 2, 3], r"shape is \[2, 2, 1\]"),
        ("image/dtype", "uint8", 'dtype is "float32"'),
        ("image/max", 255.0, "max is 1, the schema says 255"),
        ("image/mean", float("nan"), "mean is 0.5, the schema says nan"),
        ("factors/x/distinct", 4, "x.distinct is 2"),
        ("factors/y/absent", 0, "y.absent is 1"),
        ("factors/x", None, "factors.x is .* the schema says null"),
        ("factors", "gone", 'the schema says "gone"'),
    ],
)
def test_planted_difference(
    split: dict, path: str, value: object, words: str
) -> None:
    schema = {"data": copy.deepcopy(split)}
    *parents, last = path.split("/")
    place = schema["data"]
    for parent in parents:
        place = place[parent]
    place[last] = value
    ((name, reason),) = compare_schemas(schema, {"data": split})
    assert name == "data"
    assert re.search(words, reason)


def test_unknown_and_missing_data_sets(split: dict) -> None:
    found = dict(compare_schemas({"old": split}, {"new": split}))
    assert "makes no such data set" in found["old"]
    assert "does not know it" in found["new"]
