"""Published models, loaded: built from their flags, filled with numbers.

No code comes with them: plugins and files that flags name are refused. Weights
are an `.npz` archive of 000.npy, 001.npy, ..., in the order of `get_weights`,
float32 or float16, which is compared with the model before memory is taken.
"""

from __future__ import annotations

import dataclasses
import io
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.flagfiles import split_lines
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig, make_config
from tfcomp.config.run_flags import parse_lines
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.loading import LoadedRun
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

TYPES = ("float32", "float16")
HEADER_BYTES = 4096  # of a member, at most
_FILE_REGION = re.compile(r"(^|[&|:])file:")


def load_published_run(
    name: str, source: str = "", sha256: str = ""
) -> LoadedRun:
    """Loads a published model, arguments as of `read_model`; RunError if a file
    is missing, damaged or of another kind, ConfigError for a wrong name."""
    source = find_source(source)
    contents = read_model(source, name, sha256)
    return make_published(contents, name or source)


def make_published(contents: Mapping[str, bytes], name: str) -> LoadedRun:
    """The run that files of a published model describe; RunError if none."""
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


def format_weights(weights: Sequence[np.ndarray], dtype: str) -> bytes:
    """An archive, the same bytes for the same weights; RunError for NaN."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, values in enumerate(weights):
            name, member = f"{number:03d}.npy", io.BytesIO()
            with np.errstate(over="ignore"):
                stored = np.ascontiguousarray(values, dtype)
            _check_finite(stored, name)
            np.lib.format.write_array(member, stored.reshape(values.shape))
            # Without the time of writing.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue(), compresslevel=9)
    return content.getvalue()


def count_numbers(content: bytes) -> int:
    """How many numbers an archive can have at most; RunError if it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return sum(info.file_size for info in archive.infolist()) // 2
    except Exception as error:  # whatever a damaged file leads to
        raise _damaged("is no .npz archive") from error


def parse_weights(
    content: bytes, shapes: Sequence[tuple[int, ...]]
) -> list[np.ndarray]:
    """The weights of a model whose variables have these shapes, float32;
    RunError if the archive is damaged, another one, or has infinite numbers."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [f"{number:03d}.npy" for number in range(len(shapes))]
            if archive.namelist() != names:
                rule = f"must have {len(shapes)} arrays, 000.npy and so on"
                raise _damaged(rule)
            return [
                _read_member(archive, name, tuple(shape))
                for name, shape in zip(names, shapes, strict=True)
            ]
    except RunError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _damaged(f"cannot be read ({reason[:200]})") from error


def _read_member(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]
) -> np.ndarray:
    size = math.prod(shape)
    if archive.getinfo(name).file_size > HEADER_BYTES + 4 * size:
        raise _damaged(f"must have {size:,} numbers in {name}")
    with archive.open(name) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise _damaged(f"must have NumPy's format 1.0 in {name}")
        found, is_turned, dtype = np.lib.format.read_array_header_1_0(file)
        if found != shape or dtype.str not in ("<f4", "<f2"):
            rule = f"must have {' or '.join(TYPES)} {list(shape)} in {name}"
            raise _damaged(f"{rule}, got {dtype} {list(found)}")
        if is_turned:
            raise _damaged(f"must have C's order in {name}")
        values = np.frombuffer(file.read(), dtype).reshape(shape)
    _check_finite(values, name)
    return values.astype(np.float32)


def _check_finite(values: np.ndarray, name: str) -> None:
    if not np.isfinite(values).all():
        raise _damaged(f"must have finite numbers alone in {name}")


def _damaged(rule: str) -> RunError:
    return RunError(f"weights.npz {rule}")
