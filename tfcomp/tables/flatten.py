"""One run as rows: its flags, and every number of its files."""

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig
from tfcomp.config.run_flags import RETIRED
from tfcomp.config.settings import NOUNS
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
IDENTITY = "run name study folder setting seed round".split()
START = "start"
END = "end"
ALL = "all"
SUBSETS = ("id", "ood")  # starts of their names
# Lists that are not per stage, even if their length matches.
PLACES = (
    "border_relative_mse",
    "curve_mse",
    "curve_values",
    "multiple_peaks_by_height_id",
    "multiple_peaks_by_height_ood",
)
NO_FLAGS = {
    *IDENTITY,
    *ORIGIN,
    MEASURED,
    *UNIMPORTANT,
}
SKIPPED = (
    "own_measures",
    "measures",
    "stages",
    "version",
    "start",
    "name",
)


@functools.cache
def get_defaults() -> Mapping[str, Any]:
    """Lists all flags of a run with their defaults."""
    return RunConfig().to_flags()


def parse_value(name: str, text: str) -> Any:
    """Parses the text of a flag.

    Args:
        name: Of the flag.
        text: Its value in a file.

    Raises:
        ConfigError: If a number is expected, and the text is not one.
    """
    default = get_defaults().get(name, "")
    kind = type(default)
    if kind is bool:
        return text in ("true", "True")
    try:
        return kind(text)
    except ValueError as error:
        noun = NOUNS[kind.__name__]
        raise ConfigError(name, f"must be {noun}", text) from error


def parse_run_flags(text: str) -> tuple[Flags, dict[str, str]]:
    """Parses a `run.flags` into flags and comments.

    Raises:
        ConfigError: If a number is expected, and the text is not one.
    """
    flags = dict(get_defaults())
    origin = {}
    for line in text.splitlines():
        content = line[2:]
        if line.startswith("# "):
            name, _, value = content.partition(": ")
            origin[name] = value
        elif line.startswith("--"):
            name, _, value = content.partition("=")
            flags[name] = parse_value(name, value)
    return flags, origin


def hash_setting(
    flags: Mapping[str, Any],
    seed: int | None = None,
) -> str:
    """Hashes the flags that decide a run, to 16 hex digits.

    Args:
        flags: Of the run.
        seed: Its seed, to tell runs of one setting apart; None for the setting.
    """
    defaults = get_defaults()
    deciding = []
    for name, value in sorted(flags.items()):
        # Without defaults: flags that a later version adds change no hash.
        is_default = value == defaults.get(name)
        is_unimportant = name in UNIMPORTANT
        if is_default or is_unimportant or _is_retired(name, value):
            continue
        deciding.append((name, value))

    text = repr(deciding)
    if seed is not None:
        text = repr((deciding, seed))
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()[:16]


def _is_retired(name: str, value: Any) -> bool:
    """Returns True for a flag of an earlier version that changes nothing."""
    line = f"--{name}={value}"
    return line.lower() in RETIRED


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

    @property
    def place(self) -> str:
        """Its folder; of a pack, its name."""
        return self.row["folder"] or self.row["name"]


def describe_run(
    flags: Flags,
    folder: str = "",
    study: str = "planted",
    origin: Mapping[str, str] | None = None,
    measured: str = "",
) -> dict[str, Any]:
    """Makes the row of a run in the table of runs.

    Args:
        flags: All flags with their values.
        folder: The run folder; empty for a run of a pack.
        study: Name of the sweep or the pack.
        origin: Versions and machine, by name of `ORIGIN`.
        measured: The version that measured it; empty if it is not measured.
    """
    seed = flags["seed"]
    _, _, name = folder.rpartition("/")
    row = {
        "run": hash_setting(flags, seed),
        "name": name,
        "study": study,
        "folder": folder,
        "setting": hash_setting(flags),
        "seed": seed,
        "round": min(seed // 100, 2),
    }
    hidden = {*LOCATION_FLAGS, "seed"}
    for name, value in flags.items():
        if name in hidden or _is_retired(name, value):
            continue
        row[name] = value
    if origin is None:
        origin = {}
    for name in ORIGIN:
        row[name] = origin.get(name, "")
    row[MEASURED] = measured
    return row


def list_numbers(
    metrics: Mapping[str, Any],
    measures: Mapping[str, Any],
) -> Iterator[Row]:
    """Lists all numbers of a run; of stages, numbers of training come first.

    Args:
        metrics: The content of `metrics.json`.
        measures: What `tfcomp analyze --measure` has added.
    """
    layers = metrics.get("layers", {})
    trained = set()
    for stage, scores in layers.items():
        trained.update(scores)
        numbers = _walk(scores)
        for name, value in numbers:
            yield END, ALL, stage, name, value

    for part, scores in metrics.items():
        if part == "layers" or part in SKIPPED:
            continue
        subset = ALL
        prefix = part
        if part.startswith(SUBSETS):
            subset = part
            prefix = ""
        numbers = _walk(scores, prefix)
        for name, value in numbers:
            yield END, subset, "", name, value

    stages = measures.get("stages") or []
    end_numbers = _list_measures(measures, stages)
    for stage, name, value in end_numbers:
        is_repeated = stage and name in trained
        if not is_repeated:
            yield END, ALL, stage, name, value

    start = measures.get("start") or {}
    start_numbers = _list_measures(start, stages)
    for stage, name, value in start_numbers:
        yield START, ALL, stage, name, value


def _list_measures(
    measures: Mapping[str, Any],
    stages: Sequence[str],
) -> Iterator[tuple[str, str, float]]:
    """Yields stage, name and value of the numbers that claims need.

    Args:
        measures: Numbers by name; of stages, lists.
        stages: Names of the stages.
    """
    for name, value in measures.items():
        if name in SKIPPED:
            continue
        is_by_stage = isinstance(value, list) and name not in PLACES
        if is_by_stage and len(value) == len(stages):
            for stage, number in zip(stages, value, strict=True):
                yield stage, name, _to_float(number)
            continue
        numbers = _walk(value, name)
        for path, number in numbers:
            yield "", path, number


def list_history(path: Path) -> Iterator[Row]:
    """Lists the numbers of each epoch in a `history.csv`."""
    history = read_history(path)
    for epoch, row in history.items():
        when = f"epoch {epoch}"
        for tag, value in row.items():
            if math.isnan(value):
                continue
            subset, _, name = tag.partition("/")
            if not subset.startswith(SUBSETS):
                subset = ALL
                name = tag
            yield when, subset, "", name, value


def _walk(
    value: Any,
    name: str = "",
) -> Iterator[tuple[str, float]]:
    """Lists numbers at any depth with their path.

    Args:
        value: A number, or mappings and lists of numbers.
        name: Path of the value.
    """
    is_number = isinstance(value, int | float)
    if is_number or value is None:
        yield name, _to_float(value)
        return

    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return
    for part, inner in value.items():
        path = str(part)
        if name:
            path = f"{name}/{part}"
        yield from _walk(inner, path)


def _to_float(value: float | None) -> float:
    if value is None:
        return math.nan
    return float(value)
