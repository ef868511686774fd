"""Lists the files of published models and checks their hashes.

<source>/<name>/ has the card, the flags and scores of a run, and weights. Files
are read, never run; each has a size limit, and its hash is compared before it
is used.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError, suggest
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE, select_scores

CARD_FILE = "README.md"
WEIGHTS_FILE = "weights.npz"  # numbers alone
SUMS_FILE = "SHA256SUMS"  # a hash of each file, for `sha256sum -c`, too
FILES = (CARD_FILE, METRICS_FILE, FLAGS_FILE, WEIGHTS_FILE)
# Bytes of a file at most.
LIMITS = {
    CARD_FILE: 2**18,
    METRICS_FILE: 2**18,
    FLAGS_FILE: 2**16,
    WEIGHTS_FILE: 2**26,
    SUMS_FILE: 2**12,
}
DEFAULT = Path("saved_models", "published")
CLONE = Path(__file__).parents[2]
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
MAX_NAME = 120  # characters
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)")


@dataclass(frozen=True)
class Published:
    """An entry of the list of published models."""

    name: str  # as `sprites/acting/montero_range`
    size: int  # bytes of its files
    weights: int  # number of weights
    id: float | None  # relative MSE, in distribution
    ood: float | None  # relative MSE, held out; None if nothing was held out
    r2: float | None  # R^2 of held-out images about their mean


def find_source(source: str = "") -> str:
    """Returns the folder of models, by default here or in the clone."""
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
    """Lists the models of a folder, sorted by name."""
    folder = Path(find_source(source))
    models = {
        name: path.parent
        for path in folder.rglob(SUMS_FILE)
        # Skips unfinished models and the folder itself.
        if NAME.fullmatch(name := path.parent.relative_to(folder).as_posix())
    }
    if not models:
        raise RunError(f"no published models in {folder}")
    return [_describe(name, models[name]) for name in sorted(models)]


def _describe(name: str, model: Path) -> Published:
    content = _read(str(model), METRICS_FILE)
    metrics = parse_metrics(content, f"{model}/{METRICS_FILE}")
    return Published(
        name=name,
        size=sum((model / f).stat().st_size for f in (*FILES, SUMS_FILE)),
        weights=metrics.get("train", {}).get("weights", 0),
        id=metrics["id"].get("relative_mse"),
        ood=metrics.get("ood", {}).get("relative_mse"),
        r2=metrics.get("r2", {}).get("ood"),
    )


def read_model(
    source: str, name: str = "", sha256: str = ""
) -> dict[str, bytes]:
    """Reads and checks the files of a model; without a name, of the source."""
    if name:
        check_name(name)
    place = "/".join(filter(None, (source, name)))
    try:
        sums = _read(source, SUMS_FILE, name)
    except FileNotFoundError as error:
        known = [model.name for model in list_published(source)] if name else []
        hint = suggest(name, known) or f": it has no {SUMS_FILE}"
        raise RunError(f"{place} is no published model{hint}") from error
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
    try:
        metrics = json.loads(content, parse_constant=int)  # refuses NaN
    except (ValueError, RecursionError) as error:
        raise RunError(f"{place} is damaged (it is no JSON)") from error
    parts = metrics.values() if isinstance(metrics, dict) else [metrics]
    if not all(isinstance(part, dict) for part in parts):
        raise RunError(f"{place} is damaged (it holds other things)")
    others = {name: metrics.get(name, {}) for name in ("r2", "train")}
    for name, scores in (select_scores(metrics) | others).items():
        # A larger integer has no float.
        if not all(
            v is None or isinstance(v, int | float) and abs(v) <= 1e300
            for v in scores.values()
        ):
            raise RunError(f"{place} is damaged ({name} are no numbers)")
    if "id" not in metrics:
        raise RunError(f"{place} is damaged (it has no scores)")
    return metrics


def _read(source: str, file: str, name: str = "") -> bytes:
    path, limit = Path(source, name, file), LIMITS[file]
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is not a file")
    with open(path, "rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise RunError(f"{path} is too large: at most {limit:,} bytes")
    return content
