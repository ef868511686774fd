"""Loads finished runs, within limits on their files, and published models.

A published model is built from flags, none of which may name plugins or files.
Its weights 000.npy, 001.npy, ... are counted before a network is built.
"""

import contextlib
import importlib
import io
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfcomp.config.errors import ConfigError, RunError, is_exhausted
from tfcomp.config.flagfiles import split_lines
from tfcomp.config.plugins import admit_plugins
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig, make_config
from tfcomp.config.run_flags import parse_record
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.models.config_checks import check_config
from tfcomp.models.stages import build_model
from tfcomp.storage import published_folder, run_folder
from tfcomp.storage.files import DamagedFileError
from tfcomp.storage.published_folder import WEIGHTS_FILE
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE

MAX_RATIO = 20  # bytes of all weights over bytes of the file
MIN_BYTES = 2**26  # of weights that any file may describe
TYPES = ("float32", "float16")
MIN_SQUARE = 2**20  # of the width of small networks
MAX_UNPACKED = 2**28  # bytes of all arrays; 64 MB of weights deflate little
_FILE_REGION = re.compile(r"(^|[&|:])file:")


@dataclass(frozen=True)
class LoadedRun:
    """A finished run."""

    path: Path | None  # its folder; None for a model trained elsewhere
    config: RunConfig
    dataset: Dataset
    model: keras.Model
    metrics: dict[str, Any]  # the content of `metrics.json`
    description: str  # of the model and its data, in words
    reader: Any = None  # a `Reader`, if one was given
    # More results by name, each a list of rows.
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run; RunError if a file is missing or damaged."""
    path = Path(path)
    config = run_folder.check_run(path)
    model_file = path / run_folder.MODEL_FILE
    importlib.import_module("tfcomp.models.keras_objects")
    admit_plugins(path, config.plugins)
    try:
        metrics = run_folder.read_metrics(path)
        model = load_model(model_file)
    except Exception as error:  # damaged files raise errors of many kinds
        if is_exhausted(error):
            raise
        rule = "has a model that would run code (Lambda), which is refused"
        if "safe_mode" not in str(error):  # of Keras
            if not isinstance(error, DamagedFileError):
                error = DamagedFileError(model_file, error)
            command = run_folder.describe_resume(path)
            rule = f"is damaged: {error}: repair it with {command}"
        raise RunError(f"--run={path} {rule}") from error
    dataset = make_dataset(config)
    dataset.prepare()
    text = run_folder.read_flags_text(path)
    return LoadedRun(path, config, dataset, model, metrics, text)


def load_model(path: Path) -> keras.Model:
    """Loads a Keras file whose parts and weights are not far too large."""
    run_folder.check_model(path)
    with _limit_weights(path):
        return keras.models.load_model(path)


@contextlib.contextmanager
def _limit_weights(path: Path) -> Iterator[None]:
    """Raises a DamagedFileError for layers with more weights than the file."""
    # Keras builds layers before it reads weights: 28 kB can describe 9 GB.
    most = max(MAX_RATIO * path.stat().st_size, MIN_BYTES)
    total = 0
    add_weight = keras.Layer.add_weight

    def add_limited(
        layer: Any, shape: Any = None, *args: Any, **rest: Any
    ) -> Any:
        nonlocal total
        sizes = (shape,) if isinstance(shape, int) else shape or ()
        total += 4 * math.prod(int(size) for size in sizes)  # float32
        if total > most:
            reason = f"it describes weights of more than {most >> 20:,} MB"
            raise DamagedFileError(path, reason)
        return add_weight(layer, shape, *args, **rest)

    keras.Layer.add_weight = add_limited
    try:
        yield
    finally:
        keras.Layer.add_weight = add_weight


def load_published_run(
    name: str, source: str = "", sha256: str = ""
) -> LoadedRun:
    """Loads a published model, with the arguments of `read_model`."""
    source = published_folder.find_source(source)
    contents = published_folder.read_model(source, name, sha256)
    return make_published(contents, name or source)


def make_published(contents: Mapping[str, bytes], name: str) -> LoadedRun:
    """Makes a run from the files of a published model."""
    try:
        config = parse_published_flags(contents[FLAGS_FILE], name)
        metrics = published_folder.parse_metrics(
            contents[METRICS_FILE], METRICS_FILE
        )
        dataset = check_config(config)
        model = _make_model(config, dataset, contents[WEIGHTS_FILE])
    except (ConfigError, RunError) as error:
        raise RunError(f"{name} cannot be used: {error}") from error
    text = contents[FLAGS_FILE].decode()
    return LoadedRun(None, config, dataset, model, metrics, text)


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


def _make_model(
    config: RunConfig, dataset: Dataset, content: bytes
) -> keras.Model:
    arrays = read_arrays(content)
    count = sum(map(np.size, arrays))
    sizes = config.model
    largest = max(sizes.width, sizes.depth, sizes.rank, sizes.candidates)
    # Before memory is taken for layers that the flags make too large.
    if largest**2 > 16 * count + MIN_SQUARE:
        rule = f"has {count:,} numbers, too few for layers of {largest:,}"
        raise RunError(f"{WEIGHTS_FILE} {rule}")
    model = build_model(config, dataset, "float32")
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
