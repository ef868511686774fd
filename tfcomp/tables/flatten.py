"""One run as rows: its flags, and every number of its files."""

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig
from tfcomp.config.run_flags import RETIRED
from tfcomp.statistics.seed_statistics import IGNORED
from tfcomp.storage.run_folder import read_history

Flags = dict[str, Any]
# When, subset, stage, name, value; NaN for a null.
Row = tuple[str, str, str, str, float]

# Flags that change no number of a run.
UNIMPORTANT = frozenset(LOCATION_FLAGS) | set(IGNORED)
# Comments of `run.flags`.
ORIGIN = "tfcomp tensorflow keras numpy devices cores threads onednn".split()
MEASURED = "measured_with"
IDENTITY = ["run", "name", "study", "folder", "setting", "seed", "round"]
START, END, ALL = "start", "end", "all"
# Lists whose places are no stages, though they may be as many.
PLACES = ("border_relative_mse", "curve_mse", "curve_values")
NO_FLAGS = {*IDENTITY, *ORIGIN, MEASURED, *UNIMPORTANT}
SKIPPED = ("own_measures", "measures", "stages", "version", "start", "name")


@functools.cache
def get_defaults() -> Mapping[str, Any]:
    """Returns all flags of a run with their defaults."""
    return RunConfig().to_flags()


def parse_value(name: str, text: str) -> Any:
    """Converts a flag to its type; ValueError if a number is none."""
    kind = type(get_defaults().get(name, ""))
    return text in ("true", "True") if kind is bool else kind(text)


def parse_run_flags(text: str) -> tuple[Flags, dict[str, str]]:
    """Returns flags and comments; ValueError if a number is none."""
    flags, origin = dict(get_defaults()), {}
    for line in text.splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            origin[name] = value
        elif line.startswith("--"):
            name, _, value = line[2:].partition("=")
            flags[name] = parse_value(name, value)
    return flags, origin


def hash_setting(flags: Mapping[str, Any], seed: int | None = None) -> str:
    """Returns 16 hex digits for the flags that decide a run, and its seed."""
    # Without defaults: flags that a later version adds change no hash.
    defaults = get_defaults()
    kept = sorted(
        (name, value)
        for name, value in flags.items()
        if name not in UNIMPORTANT
        and value != defaults.get(name)
        and not _is_retired(name, value)
    )
    text = repr(kept if seed is None else (kept, seed))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_retired(name: str, value: Any) -> bool:
    return f"--{name}={value}".lower() in RETIRED


class Run(NamedTuple):
    """One run.

    Attributes:
        row: Its flags, in the table of runs.
        numbers: Its rows in the table of numbers.
        own_metrics: Declarations of the metrics that its user registered.
        age: When it started; measures may be written much later.
        notes: Parts of it that cannot be read.
    """

    row: dict[str, Any]
    numbers: list[Row]
    own_metrics: Mapping[str, Any] = {}
    age: float = 0.0
    notes: Sequence[str] = ()


def describe_run(
    flags: Flags,
    folder: str = "",
    study: str = "planted",
    origin: Mapping[str, str] | None = None,
    measured: str = "",
) -> dict[str, Any]:
    """Returns the row of a run."""
    hidden = {*LOCATION_FLAGS, "seed"}
    return {
        "run": hash_setting(flags, flags["seed"]),
        "name": folder.rpartition("/")[2],
        "study": study,
        "folder": folder,
        "setting": hash_setting(flags),
        "seed": flags["seed"],
        "round": min(flags["seed"] // 100, 2),
        **{
            name: value
            for name, value in flags.items()
            if name not in hidden and not _is_retired(name, value)
        },
        **{name: (origin or {}).get(name, "") for name in ORIGIN},
        MEASURED: measured,
    }


def list_numbers(
    metrics: Mapping[str, Any], measures: Mapping[str, Any]
) -> Iterator[Row]:
    """Yields all numbers; of stages, numbers of training come first."""
    layers = metrics.get("layers", {})
    for stage, scores in layers.items():
        for name, value in _walk(scores):
            yield END, ALL, stage, name, value
    for part, scores in metrics.items():
        if part.startswith(("id", "ood")):
            for name, value in _walk(scores):
                yield END, part, "", name, value
        elif part != "layers" and part not in SKIPPED:
            for name, value in _walk(scores, part):
                yield END, ALL, "", name, value
    known = {name for scores in layers.values() for name in scores}
    stages = measures.get("stages") or []
    parts = {END: measures, START: measures.get("start") or {}}
    for when, numbers in parts.items():
        for name, value in numbers.items():
            if name in SKIPPED:
                continue
            is_list = isinstance(value, list) and name not in PLACES
            if not is_list or len(value) != len(stages):
                for path, number in _walk(value, name):
                    yield when, ALL, "", path, number
            elif when == START or name not in known:
                for stage, number in zip(stages, value, strict=True):
                    yield when, ALL, stage, name, _to_float(number)


def list_history(path: Path) -> Iterator[Row]:
    """Yields the numbers of each epoch in a `history.csv`."""
    for epoch, row in read_history(path).items():
        for tag, value in row.items():
            if math.isnan(value):
                continue
            subset, _, name = tag.partition("/")
            if not subset.startswith(("id", "ood")):
                subset, name = ALL, tag
            yield f"epoch {epoch}", subset, "", name, value


def _walk(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yields numbers at any depth with their path."""
    if value is None or isinstance(value, int | float):
        yield name, _to_float(value)
    if isinstance(value, list):
        value = dict(enumerate(value))
    for part, inner in value.items() if isinstance(value, Mapping) else ():
        yield from _walk(inner, f"{name}/{part}" if name else str(part))


def _to_float(value: float | None) -> float:
    return math.nan if value is None else float(value)
