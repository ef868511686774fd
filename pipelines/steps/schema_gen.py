"""schema_gen: what the examples of a profile are, as statistics and a schema.

Both stand in one JSON file, by data set and split. As `schema.json` of a
profile it is what the examples of the next run must be: `example_validator`
stops the pipeline at any difference.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from kfp import dsl

from pipelines.profile import parse_profile
from pipelines.running_step import count, run_step
from pipelines.steps import example_gen
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.materialized import Examples
from tfcomp.storage.files import write_text

# Of a number in statistics: another processor may render the last bit
# otherwise, and a mean adds up a million pixels.
TOLERANCE = 1e-4
Schema = dict[str, Any]


def execute(
    profile: str,
    examples: dsl.Dataset,
    work_dir: str,
    schema: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("schema_gen") as step:
        parsed = parse_profile(profile)
        configs = example_gen.list_datasets(parsed)
        names = map(example_gen.describe_dataset, configs)
        schemas = [describe_examples(c, examples.path) for c in configs]
        found = dict(zip(names, schemas, strict=True))
        step.place(schema, work_dir, "schema.json")
        write_text(Path(schema.path), json.dumps(found, indent=1) + "\n")
        step.log(metrics, {"datasets": len(found)})
        word = "compared with" if parsed.schema else "to be kept as"
        step.note = (
            f"{count(len(found), 'data set')}, {word} schema.json of profile "
            f"{parsed.name}: {schema.path}"
        )


def describe_examples(config: RunConfig, examples_dir: str | Path) -> Schema:
    """Statistics and schema of the splits on disk; why they are unreadable."""
    space = make_dataset(config).space
    try:
        train, ood = example_gen.load_splits(config, examples_dir)
    except RunError as error:
        return {"unreadable": str(error)}
    return {
        "train": describe_split(train, space),
        "ood": describe_split(ood, space),
    }


def describe_split(examples: Examples, space: FactorSpace) -> Schema:
    """Type, shape and range of the images, and values of each factor."""
    images = examples.images
    return {
        "examples": len(images),
        "image": {
            "dtype": str(images.dtype),
            "shape": list(images.shape[1:]),
            **_describe_numbers(images, "min", "max", "mean", "std"),
        },
        "factors": {
            factor.name: _describe_factor(column)
            for factor, column in zip(space, examples.factors.T, strict=True)
        },
    }


def _describe_factor(column: np.ndarray) -> Schema:
    present = column[~np.isnan(column)]
    return {
        "dtype": str(column.dtype),
        "absent": int(np.isnan(column).sum()),
        "distinct": len(np.unique(present)),
        **_describe_numbers(present, "min", "max"),
    }


def _describe_numbers(numbers: np.ndarray, *names: str) -> dict[str, float]:
    found = {name: getattr(numbers, name) for name in names if numbers.size}
    return {name: float(compute()) for name, compute in found.items()}


def compare_schemas(
    expected: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Data sets that differ from the schema of a profile, and the reasons."""
    for name in expected.keys() - found.keys():
        yield name, "the schema has it, the profile makes no such data set"
    for name in found.keys() - expected.keys():
        yield name, "the schema of the profile does not know it"
    for name in sorted(expected.keys() & found.keys()):
        for place, old, new in _walk("", expected[name], found[name]):
            yield name, f"{place} is {new}, the schema says {old}"


def _walk(place: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Places at which two trees of JSON differ, and what they have there."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            path = f"{place}.{key}".lstrip(".")
            yield from _walk(path, old.get(key), new.get(key))
    elif isinstance(old, float) and isinstance(new, float):
        if not abs(old - new) <= TOLERANCE * max(1.0, abs(old)):
            yield place, f"{old:g}", f"{new:g}"
    elif old != new or type(old) is not type(new):
        yield place, json.dumps(old), json.dumps(new)
