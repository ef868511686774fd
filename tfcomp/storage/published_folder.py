"""Published models, as files: which there are, and whether each is whole.

<source>/<name>/README.md      the card
<source>/<name>/run.flags      every flag of the training
<source>/<name>/metrics.json   scores of what the weights draw
<source>/<name>/weights.npz    the weights: numbers alone
<source>/<name>/SHA256SUMS     a hash of each file, for `sha256sum -c`, too
<source>/index.json            all of them, for those who list an address

A source is a folder, or an address (`file://`, `https://`). Files of others
are read, never run: sizes have limits, and hashes are compared first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.request as web
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

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
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)")
SECONDS = 30  # without an answer
# No handler of other protocols, to which an address may lead.
HANDLERS = (
    web.ProxyHandler,
    web.HTTPSHandler,
    web.HTTPRedirectHandler,
    web.HTTPDefaultErrorHandler,
    web.HTTPErrorProcessor,
    web.UnknownHandler,
)


@dataclass(frozen=True)
class Published:
    """What a list of published models says of one."""

    name: str  # as `sprites/acting/montero_range`
    sha256: str  # of its `SHA256SUMS`, thereby of all that it is
    size: int  # bytes of its files
    weights: int  # how many numbers it has
    id: float | None  # relative MSE of combinations that it was trained on
    ood: float | None  # of those that were held out; None if none were
    r2: float | None  # R^2 of held-out images about their mean


def find_source(source: str = "") -> str:
    """The folder or address that is meant, by default `saved_models/published`
    of the working directory, else of the clone that tfcomp runs from."""
    if source:
        return os.path.expanduser(source).rstrip("/")
    for folder in (DEFAULT, CLONE / DEFAULT):
        if folder.is_dir():
            return str(folder)
    raise RunError(
        f"no published models: there is no {DEFAULT} here, and tfcomp was "
        "installed without a clone; --source=FOLDER or an https:// address "
        "of that folder names them"
    )


def list_published(source: str = "") -> list[Published]:
    """All models of a folder or an address, by name; RunError if there are
    none, or a file cannot be what was written."""
    source = find_source(source)
    folder = _find_folder(source)
    if folder is None:
        place = f"{source}/{INDEX_FILE}"
        rows = _parse_object(_read(source, INDEX_FILE), place)
        return [_make_row(name, rows[name], place) for name in sorted(rows)]
    found = sorted(path.parent for path in folder.rglob(SUMS_FILE))
    names = [path.relative_to(folder).as_posix() for path in found]
    # Not the folder itself, nor one that was being written.
    names = [name for name in names if not name.startswith(".")]
    if not names:
        raise RunError(f"no published models in {source}")
    return [_describe(source, name) for name in names]


def write_index(folder: Path) -> None:
    """Writes the list of a folder's models, for those who have an address."""
    lines = []  # one for each model, which changes of the list are readable by
    for model in list_published(str(folder)):
        row = asdict(model)
        name = json.dumps(row.pop("name"))
        lines.append(f"{name}: {json.dumps(row)}")
    write_text(folder / INDEX_FILE, "{\n" + ",\n".join(lines) + "\n}\n")


def read_model(
    source: str, name: str = "", sha256: str = ""
) -> dict[str, bytes]:
    """The files of a model, each compared with its hash; without a name, the
    source is the model itself. `sha256` is what `SHA256SUMS` must have.

    RunError if there is no such model, or a file is missing, too large or not
    the one that was published.
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
    known = {file: key for key, file in _SUM.findall(sums.decode("latin-1"))}
    if set(known) != set(FILES) or sums.count(b"\n") != len(FILES):
        rule = f"must list {', '.join(FILES)}"
        raise RunError(f"{place}/{SUMS_FILE} is damaged: it {rule}")
    contents = {}
    for file in FILES:
        try:
            contents[file] = _read(source, file, name)
        except FileNotFoundError as error:
            raise RunError(f"{place}/{file} is missing") from error
        if hash_bytes(contents[file]) != known[file]:
            rule = f"its SHA-256 is not that of {SUMS_FILE}"
            raise RunError(f"{place}/{file} is damaged: {rule}")
    return contents


def format_sums(contents: Mapping[str, bytes]) -> str:
    """The text of `SHA256SUMS`."""
    return "".join(f"{hash_bytes(contents[f])}  {f}\n" for f in FILES)


def hash_bytes(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def check_name(name: str) -> None:
    """Refuses names that are no path of plain words, by a ConfigError."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        rule = (
            "must be words of a-z, 0-9, _, . and -, separated by slashes, "
            f"{MAX_NAME} characters at most"
        )
        raise ConfigError("name", rule, name)


def parse_metrics(content: bytes, place: str) -> dict[str, Any]:
    """The content of a `metrics.json`; RunError if it has no scores."""
    metrics = _parse_object(content, place)
    if not all(isinstance(part, dict) for part in metrics.values()):
        raise RunError(f"{place} is damaged (it holds other things)")
    for subset, scores in select_scores(metrics).items():
        if not all(isinstance(v, int | float | None) for v in scores.values()):
            raise RunError(f"{place} is damaged ({subset} are no numbers)")
    if "id" not in metrics:
        raise RunError(f"{place} is damaged (it has no scores)")
    return metrics


def _describe(source: str, name: str) -> Published:
    """A model of a folder; its weights are not read."""
    place = f"{source}/{name}/{METRICS_FILE}"
    metrics = parse_metrics(_read(source, METRICS_FILE, name), place)
    folder = Path(_find_folder(source) or "", name)
    row = {
        "sha256": hash_bytes(_read(source, SUMS_FILE, name)),
        "size": sum((folder / f).stat().st_size for f in (*FILES, SUMS_FILE)),
        "weights": metrics.get("train", {}).get("weights", 0),
        "id": metrics["id"].get("relative_mse"),
        "ood": metrics.get("ood", {}).get("relative_mse"),
        "r2": metrics.get("r2", {}).get("ood"),
    }
    return _make_row(name, row, place)


def _make_row(name: str, row: Any, place: str) -> Published:
    """One model, from what may be somebody else's file."""
    kinds = dict.fromkeys(("size", "weights"), int) | {"sha256": str}
    kinds |= dict.fromkeys(("id", "ood", "r2"), float | int | None)
    if (
        isinstance(row, dict)
        and row.keys() == kinds.keys()
        and all(isinstance(row[key], kind) for key, kind in kinds.items())
        and NAME.fullmatch(name)
    ):
        return Published(name, **row)
    raise RunError(f"{place} is damaged ({name[:MAX_NAME]!a})")


def _read(source: str, file: str, name: str = "") -> bytes:
    """A file of a model, or of the source; errors as of `fetch`."""
    folder, limit = _find_folder(source), LIMITS[file]
    if folder is None:
        return fetch("/".join(filter(None, (source, name, file))), limit)
    path = folder / name / file
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is no file")
    with open(path, "rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise RunError(f"{path} is too large: at most {limit:,} bytes")
    return content


def fetch(address: str, limit: int) -> bytes:
    """The content of a file; RunError if it has more bytes than the limit or
    there is no answer, FileNotFoundError if the address has no such file."""
    opener = web.OpenerDirector()
    for handler in HANDLERS:
        opener.add_handler(handler())
    try:
        with opener.open(address, timeout=SECONDS) as stream:
            content = stream.read(limit + 1)
    except (OSError, ValueError, HTTPException) as error:
        if getattr(error, "code", None) in (404, 410):
            raise FileNotFoundError(address) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RunError(f"{address} does not answer: {reason}") from error
    if len(content) > limit:
        raise RunError(f"{address} is too large: at most {limit:,} bytes")
    return content


def _find_folder(source: str) -> Path | None:
    """The folder that a source is; None for an address."""
    parts = urlsplit(source)
    if "://" not in source:
        return Path(source)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if parts.scheme == "https" and parts.netloc:
        return None
    rule = "must be a folder, or an address file:// or https://"
    raise ConfigError("source", rule, source)


def _describe_missing(source: str, name: str) -> str:
    """Why there is no such model, with the name that may have been meant."""
    try:
        known = [model.name for model in list_published(source)]
    except (RunError, OSError):
        return f"no published models in {source}"
    hint = suggest(name, known) or " (see tfcomp published)"
    return f"{name or source!r} is not among the published models{hint}"


def _parse_object(content: bytes, place: str) -> dict[str, Any]:
    try:
        found = json.loads(content, parse_constant=int)  # NaN is no number
    except (ValueError, RecursionError) as error:
        raise RunError(f"{place} is damaged (it is no JSON)") from error
    if not isinstance(found, dict):
        raise RunError(f"{place} is damaged (it holds no JSON object)")
    return found
