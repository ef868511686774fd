"""Published models, loaded: built from their flags, filled with numbers.

No code comes with them: plugins and files that flags name are refused.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import keras

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.flagfiles import split_lines
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig, make_config
from tfcomp.config.run_flags import parse_lines
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.published_weights import count_numbers, parse_weights
from tfcomp.models import MODELS
from tfcomp.models.config_checks import list_announcements
from tfcomp.models.initial_model import build_model
from tfcomp.models.model_rules import estimate_model
from tfcomp.storage.published_folder import (
    WEIGHTS_FILE,
    find_source,
    parse_metrics,
    read_model,
)
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE

_FILE_REGION = re.compile(r"(^|[&|:])file:")


def load_published_run(
    name: str, source: str = "", sha256: str = ""
) -> LoadedRun:
    """Loads a published model, arguments as of `read_model`; RunError if a file
    is missing, damaged or not of this kind, ConfigError for no name or
    source."""
    source = find_source(source)
    contents = read_model(source, name, sha256)
    return make_published(contents, name or source)


def make_published(contents: Mapping[str, bytes], name: str) -> LoadedRun:
    """The run that the files of a published model describe; RunError as of
    `load_published_run`."""
    try:
        config = parse_published_flags(contents[FLAGS_FILE], name)
        metrics = parse_metrics(contents[METRICS_FILE], METRICS_FILE)
        model = _make_model(config, contents[WEIGHTS_FILE])
    except (ConfigError, RunError) as error:
        raise RunError(f"{name} cannot be used: {error}") from error
    text = contents[FLAGS_FILE].decode()
    return LoadedRun(None, config, make_dataset(config), model, metrics, text)


def parse_published_flags(content: bytes, name: str) -> RunConfig:
    """The settings of a published model, at places of this machine; RunError or
    ConfigError if they are none, or ask for code or files."""
    try:
        lines = split_lines(content.decode())
    except UnicodeDecodeError as error:
        raise RunError(f"{FLAGS_FILE} is no text") from error
    for line in lines:
        if not re.match(r"--\w+=", line) or line.startswith("--flagfile="):
            raise RunError(f"{FLAGS_FILE} has a line {line[:60]!a}")
    flags = parse_lines(lines)
    kept = {k: v for k, v in flags.items() if k not in LOCATION_FLAGS}
    config = make_config(kept | {"run_name": make_run_name(name)})
    check_publishable(config)
    list_announcements(config)
    return config


def make_run_name(name: str) -> str:
    """The name of a model in reports, which has no slashes."""
    return re.sub(r"\W+", "_", name)[-100:]


def check_publishable(config: RunConfig) -> None:
    """Refuses a run whose model needs code or files of somebody, by a
    ConfigError that names the flag."""
    for flag, is_foreign in {
        "plugins": bool(config.plugins),
        "dataset": config.data.dataset == "table",
        "region": bool(_FILE_REGION.search(config.data.region)),
    }.items():
        if is_foreign:
            rule = "must need no code and no file of anybody to be published"
            raise ConfigError(flag, rule, config.to_flags()[flag])


def _make_model(config: RunConfig, content: bytes) -> keras.Model:
    # Flags of somebody else could ask for a network of any size.
    dataset = make_dataset(config)
    size: Any = MODELS.get(config.model.model).size or estimate_model
    wanted, numbers = size(config, dataset).weights, count_numbers(content)
    if wanted > numbers:
        rule = f"has {numbers:,} numbers at most, the flags ask for {wanted:,}"
        raise RunError(f"{WEIGHTS_FILE} {rule}")
    model = build_model(config, dataset, "float32")
    shapes = [tuple(weight.shape) for weight in model.weights]
    model.set_weights(parse_weights(content, shapes))
    return model


def rename_published(run: LoadedRun, name: str) -> LoadedRun:
    """A run under the name of a published model."""
    config = dataclasses.replace(run.config, run_name=make_run_name(name))
    return dataclasses.replace(run, config=config)
