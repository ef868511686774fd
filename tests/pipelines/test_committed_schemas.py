"""The schemas of the shipped profiles are what their flags draw.

With `UPDATE_PAGES=1` in the environment, the slow test writes them.
"""

import json
import os
from pathlib import Path

import pytest

from pipelines.profile import (
    SCHEMA_FILE,
    SHIPPED,
    Profile,
    load_profile,
    replace_missing_digits,
)
from pipelines.steps.example_gen import describe_dataset, list_datasets
from pipelines.steps.schema_gen import Schema, compare_schemas, describe_split
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.datasets.materialized import Examples

PROFILES = sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())


def describe_rendered(config: RunConfig) -> Schema:
    """What `schema_gen` says of the examples, without writing them."""
    dataset = make_dataset(config)
    dataset.prepare()
    every = dataset.splits.all
    tables = {
        "train": dataset.splits.train,
        "ood": every.factors[every.is_ood],
    }
    return {
        split: describe_split(
            Examples(table, dataset.render_array(table)), dataset.space
        )
        for split, table in tables.items()
    }


def has_digits(profile: Profile) -> bool:
    return not replace_missing_digits(profile).notes


@pytest.mark.parametrize("name", PROFILES)
def test_a_schema_has_the_data_sets_of_its_profile(name: str) -> None:
    profile = load_profile(name)
    names = [describe_dataset(config) for config in list_datasets(profile)]
    assert sorted(profile.schema) == sorted(names)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] if n != "smoke" else [])
        for n in PROFILES
    ],
)
def test_a_schema_is_what_its_flags_draw(name: str) -> None:
    profile = load_profile(name)
    if not has_digits(profile):
        pytest.skip("no MNIST")
    found = {
        describe_dataset(config): describe_rendered(config)
        for config in list_datasets(profile)
    }
    if "UPDATE_PAGES" in os.environ:
        text = json.dumps(found, indent=1) + "\n"
        Path(SHIPPED, name, SCHEMA_FILE).write_text(text, "utf-8")
    else:
        assert not list(compare_schemas(profile.schema, found))
