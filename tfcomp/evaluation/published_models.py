"""Loads published models: builds them from flags, then sets their weights.

No code comes with a model: flags that name plugins or files are refused. The
weights are an `.npz` archive of 000.npy, 001.npy, ..., in the order of
`get_weights`, float32 or float16. Its arrays are read within a limit, and
counted before a network is built.
"""

from __future__ import annotations

import dataclasses
import io
import math
import re
import zipfile
from collections.abc import Mapping, Sequence

import keras
import numpy as np

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig, make_config
from tfcomp.config.run_flags import parse_lines
from tfcomp.config.seals import split_lines
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.models.config_checks import list_announcements
from tfcomp.models.initial_model import build_model
from tfcomp.models.model_registry import size_model
from tfcomp.storage.published_folder import (
    WEIGHTS_FILE,
    find_source,
    parse_metrics,
    read_model,
)
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE

TYPES = ("float32", "float16")
MAX_UNPACKED = 2**28  # bytes of all arrays; 64 MB of weights deflate little
_FILE_REGION = re.compile(r"(^|[&|:])file:")


def load_published_run(
    name: str, source: str = "", sha256: str = ""
) -> LoadedRun:
    """Loads a published model; the arguments are those of `read_model`.

    Raises:
        RunError: A file is missing, damaged or of another kind.
        ConfigError: The name is invalid.
    """
    source = find_source(source)
    contents = read_model(source, name, sha256)
    return make_published(contents, name or source)


def make_published(contents: Mapping[str, bytes], name: str) -> LoadedRun:
    """Makes a run from the files of a published model.

    Raises:
        RunError: A file is invalid, or the files do not fit each other.
    """
    try:
        config = parse_published_flags(contents[FLAGS_FILE], name)
        metrics = parse_metrics(contents[METRICS_FILE], METRICS_FILE)
        model = _make_model(config, contents[WEIGHTS_FILE])
    except (ConfigError, RunError) as error:
        raise RunError(f"{name} cannot be used: {error}") from error
    text = contents[FLAGS_FILE].decode()
    return LoadedRun(None, config, make_dataset(config), model, metrics, text)


def parse_published_flags(content: bytes, name: str) -> RunConfig:
    """Parses the flags of a published model, without its folders.

    Raises:
        RunError, ConfigError: They are no flags, or name code or files.
    """
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
    dataset = make_dataset(config)
    wanted = size_model(config, dataset).weights
    count = sum(map(np.size, arrays))
    if wanted > count:
        rule = f"has {count:,} numbers, the flags ask for {wanted:,}"
        raise RunError(f"{WEIGHTS_FILE} {rule}")
    model = build_model(config, dataset, "float32")
    check_shapes(arrays, [tuple(weight.shape) for weight in model.weights])
    model.set_weights([values.astype(np.float32) for values in arrays])
    return model


def rename_published(run: LoadedRun, name: str) -> LoadedRun:
    """Returns the run under the name of a published model."""
    config = dataclasses.replace(run.config, run_name=make_run_name(name))
    return dataclasses.replace(run, config=config)


def format_weights(weights: Sequence[np.ndarray], dtype: str) -> bytes:
    """Packs weights; equal weights give equal bytes. RunError for NaN."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, values in enumerate(weights):
            name, member = _name_array(number), io.BytesIO()
            with np.errstate(over="ignore"):
                stored = np.ascontiguousarray(values, dtype)
            _check_finite(stored, name)
            np.lib.format.write_array(member, stored.reshape(values.shape))
            # A fixed date, or the bytes would depend on the clock.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue(), compresslevel=9)
    return content.getvalue()


def read_arrays(content: bytes) -> list[np.ndarray]:
    """Reads the arrays of an archive, float32 or float16.

    Raises:
        RunError: The archive is damaged, unpacks to more than `MAX_UNPACKED`
            bytes, or has something else than finite numbers.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            if size > MAX_UNPACKED:
                limit = f"{MAX_UNPACKED:,} are allowed"
                raise _damaged(f"unpacks to {size:,} bytes, {limit}")
            names = [member.filename for member in members]
            if names != [_name_array(i) for i in range(len(names))]:
                raise _damaged("must have the arrays 000.npy and so on")
            return [_read_member(archive, member) for member in members]
    except RunError:
        raise
    except Exception as error:  # zipfile and zlib raise errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _damaged(f"is no .npz archive ({reason[:200]})") from error


def check_shapes(
    arrays: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]]
) -> None:
    """Raises a RunError unless arrays have the shapes of a model's weights."""
    if len(arrays) != len(shapes):
        raise _damaged(f"must have {len(shapes)} arrays, got {len(arrays)}")
    for number, (values, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if values.shape != tuple(shape):
            rule = f"must have {list(shape)} in {_name_array(number)}"
            raise _damaged(f"{rule}, got {list(values.shape)}")


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> np.ndarray:
    """Reads one array; what its header says is compared with its bytes."""
    name = member.filename
    with archive.open(member) as stream:
        # A bare `read()` unpacks up to 2 GB at once, whatever the file says.
        file = io.BytesIO(stream.read(member.file_size))
    if np.lib.format.read_magic(file) != (1, 0):
        raise _damaged(f"must have NumPy's format 1.0 in {name}")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.str not in ("<f4", "<f2"):
        raise _damaged(f"must have {' or '.join(TYPES)} in {name}, got {dtype}")
    if is_fortran:
        raise _damaged(f"must have C order in {name}")
    found = len(file.getbuffer()) - file.tell()
    if found != math.prod(shape) * dtype.itemsize:
        raise _damaged(f"must have as many numbers as {name} says")
    values = np.frombuffer(file.read(), dtype).reshape(shape)
    _check_finite(values, name)
    return values


def _name_array(number: int) -> str:
    return f"{number:03d}.npy"


def _check_finite(values: np.ndarray, name: str) -> None:
    if not np.isfinite(values).all():
        raise _damaged(f"must have finite numbers alone in {name}")


def _damaged(rule: str) -> RunError:
    return RunError(f"{WEIGHTS_FILE} {rule}")
