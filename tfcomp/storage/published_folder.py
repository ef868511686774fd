"""Lists the files of published models and checks their hashes.

<source>/<name>/README.md      the card
<source>/<name>/run.flags      every flag of the training
<source>/<name>/metrics.json   scores of what the weights draw
<source>/<name>/weights.npz    the weights: numbers alone
<source>/<name>/SHA256SUMS     a hash of each file, for `sha256sum -c`, too
<source>/index.json            the list of models

A source is a folder. Its files are read, never run; each has a size limit, and
its hash is compared before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError, suggest
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE, select_scores

CARD_FILE, WEIGHTS_FILE = "README.md", "weights.npz"
SUMS_FILE, INDEX_FILE = "SHA256SUMS", "index.json"
FILES = (CARD_FILE, METRICS_FILE, FLAGS_FILE, WEIGHTS_FILE)
# Bytes of a file at most.
LIMITS = {
    CARD_FILE: 2**18,
    METRICS_FILE: 2**18,
    FLAGS_FILE: 2**16,
    WEIGHTS_FILE: 2**26,
    SUMS_FILE: 2**12,
    INDEX_FILE: 2**22,
}
DEFAULT = Path("saved_models", "published")
CLONE = Path(__file__).parents[2]
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
MAX_NAME = 120  # characters
MAX_NUMBER = 10**300  # a larger integer has no float
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)")


@dataclass(frozen=True)
class Published:
    """An entry of the list of published models."""

    name: str  # as `sprites/acting/montero_range`
    sha256: str  # of its `SHA256SUMS`, which pins all other files
    size: int  # bytes of its files
    weights: int  # number of weights
    id: float | None  # relative MSE, in distribution
    ood: float | None  # relative MSE, held out; None if nothing was held out
    r2: float | None  # R^2 of held-out images about their mean


_FIELDS = {field.name for field in fields(Published)}


def find_source(source: str = "") -> str:
    """Returns the folder of published models.

    The default is `saved_models/published` in the working directory, then in
    the clone that tfcomp runs from.
    """
    if source:
        return os.path.expanduser(source).rstrip("/")
    for folder in (DEFAULT, CLONE / DEFAULT):
        if folder.is_dir():
            return str(folder)
    raise RunError(
        f"no published models: there is no {DEFAULT} here, and tfcomp was "
        "installed without a clone; --source=FOLDER names them"
    )


def list_published(source: str = "") -> list[Published]:
    """Lists the models of a folder by its index, sorted by name.

    Raises:
        RunError: There is no index, or it is damaged.
    """
    source = find_source(source)
    place = f"{source}/{INDEX_FILE}"
    try:
        rows = _parse_object(_read(source, INDEX_FILE), place)
    except FileNotFoundError as error:
        raise RunError(
            f"no published models in {source}: it has no {INDEX_FILE}"
        ) from error
    return [_make_row(name, rows[name], place) for name in sorted(rows)]


def write_index(folder: Path) -> None:
    """Writes the index of a folder."""
    lines = []  # one line per model, so that diffs are readable
    for sums in sorted(folder.rglob(SUMS_FILE)):
        name = sums.parent.relative_to(folder).as_posix()
        if not name.startswith("."):  # the folder itself, or unfinished
            row = _describe(sums.parent)
            lines.append(f"{json.dumps(name)}: {json.dumps(row)}")
    write_text(folder / INDEX_FILE, "{\n" + ",\n".join(lines) + "\n}\n")


def read_model(
    source: str, name: str = "", sha256: str = ""
) -> dict[str, bytes]:
    """Reads the files of a model and compares each with its hash.

    Args:
        source: A folder of models.
        name: The model; empty if the source is the model itself.
        sha256: The hash that `SHA256SUMS` must have, if given.

    Raises:
        RunError: There is no such model, or a file is missing, too large or
            differs from its hash.
    """
    if name:
        check_name(name)
    try:
        sums = _read(source, SUMS_FILE, name)
    except FileNotFoundError as error:
        raise RunError(_describe_missing(source, name)) from error
    place = "/".join(filter(None, (source, name)))
    if sha256 and hash_bytes(sums) != sha256:
        raise RunError(f"{place} is not the model of sha256={sha256}")
    hashes = {file: key for key, file in _SUM.findall(sums.decode("latin-1"))}
    if set(hashes) != set(FILES) or sums.count(b"\n") != len(FILES):
        rule = f"must list {', '.join(FILES)}"
        raise RunError(f"{place}/{SUMS_FILE} is damaged: it {rule}")
    contents = {}
    for file in FILES:
        try:
            contents[file] = _read(source, file, name)
        except FileNotFoundError as error:
            raise RunError(f"{place}/{file} is missing") from error
        if hash_bytes(contents[file]) != hashes[file]:
            rule = f"its SHA-256 differs from {SUMS_FILE}"
            raise RunError(f"{place}/{file} is damaged: {rule}")
    return contents


def format_sums(contents: Mapping[str, bytes]) -> str:
    """Returns the text of `SHA256SUMS`."""
    return "".join(f"{hash_bytes(contents[f])}  {f}\n" for f in FILES)


def hash_bytes(content: bytes) -> str:
    """Returns the SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def check_name(name: str) -> None:
    """Raises a ConfigError unless a name is a path of plain words."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        rule = (
            "must be words of a-z, 0-9, _, . and -, separated by slashes, "
            f"{MAX_NAME} characters at most"
        )
        raise ConfigError("name", rule, name)


def parse_metrics(content: bytes, place: str) -> dict[str, Any]:
    """Parses a `metrics.json`; a RunError if it has no scores."""
    metrics = _parse_object(content, place)
    if not all(isinstance(part, dict) for part in metrics.values()):
        raise RunError(f"{place} is damaged (it holds other things)")
    for subset, scores in select_scores(metrics).items():
        if not all(v is None or is_number(v) for v in scores.values()):
            raise RunError(f"{place} is damaged ({subset} are no numbers)")
    if "id" not in metrics:
        raise RunError(f"{place} is damaged (it has no scores)")
    return metrics


def _describe(model: Path) -> dict[str, Any]:
    """Returns the row of a model in the index, from its small files."""
    place = str(model / METRICS_FILE)
    metrics = parse_metrics(_read(str(model), METRICS_FILE), place)
    return {
        "sha256": hash_bytes(_read(str(model), SUMS_FILE)),
        "size": sum((model / f).stat().st_size for f in (*FILES, SUMS_FILE)),
        "weights": metrics.get("train", {}).get("weights", 0),
        "id": metrics["id"].get("relative_mse"),
        "ood": metrics.get("ood", {}).get("relative_mse"),
        "r2": metrics.get("r2", {}).get("ood"),
    }


def _make_row(name: str, row: object, place: str) -> Published:
    """Makes an entry of the list; a RunError if a field is invalid."""
    if isinstance(row, dict) and row.keys() | {"name"} == _FIELDS:
        counts = (row["size"], row["weights"])
        scores = (row["id"], row["ood"], row["r2"])
        if (
            NAME.fullmatch(name)
            and isinstance(row["sha256"], str)
            and all(isinstance(v, int) and is_number(v) for v in counts)
            and all(v is None or is_number(v) for v in scores)
        ):
            return Published(name, **row)
    raise RunError(f"{place} is damaged ({name[:MAX_NAME]!a})")


def is_number(value: object) -> bool:
    """Checks that a value from JSON is a finite number of at most 1e300."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MAX_NUMBER  # also false for NaN


def _read(source: str, file: str, name: str = "") -> bytes:
    """Reads a file of a model, or of the source."""
    path, limit = Path(source, name, file), LIMITS[file]
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is not a file")
    with open(path, "rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise RunError(f"{path} is too large: at most {limit:,} bytes")
    return content


def _describe_missing(source: str, name: str) -> str:
    """Explains why a model is not found, with the closest name."""
    if not name:
        return f"{source} is no published model: it has no {SUMS_FILE}"
    try:
        names = [model.name for model in list_published(source)]
    except RunError as error:
        return str(error)
    hint = suggest(name, names) or " (see tfcomp published)"
    return f"{name} is not among the published models of {source}{hint}"


def _parse_object(content: bytes, place: str) -> dict[str, Any]:
    try:
        parsed = json.loads(content, parse_constant=int)  # refuses NaN
    except (ValueError, RecursionError) as error:
        raise RunError(f"{place} is damaged (it is no JSON)") from error
    if not isinstance(parsed, dict):
        raise RunError(f"{place} is damaged (it holds no JSON object)")
    return parsed
