"""Loads published models: builds them from flags, then sets their weights.

No code comes with a model: flags that name plugins or files are refused. The
weights are arrays 000.npy, 001.npy, ... in the order of `get_weights`, which
are counted before a network is built.
"""

from __future__ import annotations

import dataclasses
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.flagfiles import split_lines
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig, make_config
from tfcomp.config.run_flags import parse_record
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.models.config_checks import list_announcements
from tfcomp.models.stages import build_model
from tfcomp.storage.published_folder import (
    WEIGHTS_FILE,
    find_source,
    parse_metrics,
    read_model,
)
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE

TYPES = ("float32", "float16")
MIN_SQUARE = 2**20  # of the width of small networks
MAX_UNPACKED = 2**28  # bytes of all arrays; 64 MB of weights deflate little
_FILE_REGION = re.compile(r"(^|[&|:])file:")


def load_published_run(
    name: str, source: str = "", sha256: str = ""
) -> LoadedRun:
    """Loads a published model; the arguments are those of `read_model`."""
    source = find_source(source)
    contents = read_model(source, name, sha256)
    return make_published(contents, name or source)


def make_published(contents: Mapping[str, bytes], name: str) -> LoadedRun:
    """Makes a run from the files of a published model."""
    try:
        config = parse_published_flags(contents[FLAGS_FILE], name)
        metrics = parse_metrics(contents[METRICS_FILE], METRICS_FILE)
        model = _make_model(config, contents[WEIGHTS_FILE])
    except (ConfigError, RunError) as error:
        raise RunError(f"{name} cannot be used: {error}") from error
    text = contents[FLAGS_FILE].decode()
    return LoadedRun(None, config, make_dataset(config), model, metrics, text)


def parse_published_flags(content: bytes, name: str) -> RunConfig:
    """Parses the flags of a published model, without its folders."""
    try:
        lines = split_lines(content.decode())
    except UnicodeDecodeError as error:
        raise RunError(f"{FLAGS_FILE} is no text") from error
    for line in lines:
        if not re.match(r"--\w+=", line) or line.startswith("--flagfile="):
            raise RunError(f"{FLAGS_FILE} has a line {line[:60]!a}")
    flags = parse_record(lines)
    kept = {k: v for k, v in flags.items() if k not in LOCATION_FLAGS}
    config = make_config(kept | {"run_name": make_run_name(name)})
    check_publishable(config)
    list_announcements(config)
    return config


def make_run_name(name: str) -> str:
    """Returns the name of a model without slashes, for reports."""
    return re.sub(r"\W+", "_", name)[-100:]


def check_publishable(config: RunConfig) -> None:
    """Raises a ConfigError if a run needs plugins or external files."""
    for flag, is_foreign in {
        "plugins": bool(config.plugins),
        "dataset": config.data.dataset == "table",
        "region": bool(_FILE_REGION.search(config.data.region)),
    }.items():
        if is_foreign:
            rule = "cannot be published: it needs plugins or external files"
            raise ConfigError(flag, rule, config.to_flags()[flag])


def _make_model(config: RunConfig, content: bytes) -> keras.Model:
    """Builds the network of the flags if there are enough weights for it."""
    arrays = read_arrays(content)
    count = sum(map(np.size, arrays))
    sizes = config.model
    largest = max(sizes.width, sizes.depth, sizes.rank, sizes.candidates)
    # Before memory is taken for layers that the flags make too large.
    if largest**2 > 16 * count + MIN_SQUARE:
        rule = f"has {count:,} numbers, too few for layers of {largest:,}"
        raise RunError(f"{WEIGHTS_FILE} {rule}")
    model = build_model(config, make_dataset(config), "float32")
    found = [values.shape for values in arrays]
    shapes = [tuple(weight.shape) for weight in model.weights]
    if len(found) != len(shapes):
        raise _damaged(f"must have {len(shapes)} arrays, got {len(found)}")
    for number, (got, shape) in enumerate(zip(found, shapes, strict=True)):
        if got != shape:
            rule = f"must have {list(shape)} in {number:03d}.npy"
            raise _damaged(f"{rule}, got {list(got)}")
    model.set_weights([values.astype(np.float32) for values in arrays])
    return model


def rename_published(run: LoadedRun, name: str) -> LoadedRun:
    """Returns the run under the name of a published model."""
    config = dataclasses.replace(run.config, run_name=make_run_name(name))
    return dataclasses.replace(run, config=config)


def format_weights(weights: Sequence[np.ndarray]) -> bytes:
    """Packs weights; equal weights give equal bytes. RunError for NaN."""
    content = io.BytesIO()
    arrays = [np.array(values, "float32", order="C") for values in weights]
    named: dict[str, Any] = {f"{n:03d}": a for n, a in enumerate(arrays)}
    np.savez_compressed(content, **named)
    read_arrays(content.getvalue())
    return content.getvalue()


def read_arrays(content: bytes) -> list[np.ndarray]:
    """Reads finite numbers of an archive that is not too large, or damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_UNPACKED:
            limit = f"{MAX_UNPACKED:,} are allowed"
            raise _damaged(f"unpacks to {size:,} bytes, {limit}")
        with np.load(io.BytesIO(content)) as members:  # refuses pickles
            arrays = dict(members)
    except RunError:
        raise
    except Exception as error:  # zipfile and zlib raise errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _damaged(f"is no .npz archive ({reason[:200]})") from error
    if list(arrays) != [f"{i:03d}" for i in range(len(arrays))]:
        raise _damaged("must have the arrays 000.npy and so on")
    for name, values in arrays.items():
        kind = getattr(values, "dtype", "bytes")
        if kind not in TYPES:
            rule = f"must have {' or '.join(TYPES)} in {name}.npy"
            raise _damaged(f"{rule}, got {kind}")
        if not np.isfinite(values).all():
            raise _damaged(f"must have finite numbers alone in {name}.npy")
    return list(arrays.values())


def _damaged(rule: str) -> RunError:
    return RunError(f"{WEIGHTS_FILE} {rule}")
