"""Evidence: finished runs and threshold tables, read from files.

No TensorFlow. A run is read even if another version of tfcomp made it: flags
that this version does not know are kept as text.
"""

from __future__ import annotations

import csv
import functools
import glob
import json
import os
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from tfcomp.config import LOCATION_FLAGS
from tfcomp.config import RunConfig
from tfcomp.measures.files import read_measures
from tfcomp.run_folder import FLAGS_FILE
from tfcomp.run_folder import METRICS_FILE
from tfcomp.run_search import find_runs
from tfcomp.seed_statistics import IGNORED
from tfcomp.seed_statistics import get_score

THRESHOLDS_FILE = "thresholds.csv"
SLOPES_FILE = "slopes.csv"

Flags = dict[str, Any]
# Settings that do not change what a run computes.
UNIMPORTANT = frozenset(LOCATION_FLAGS) | set(IGNORED)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        path: Its folder.
        flags: All its flags; one that the file lacks has its default.
        metrics: The content of `metrics.json`.
        measures: The content of `measures.json`; empty if there is none.
        origin: Versions and machine, the comments of `run.flags`.
    """

    path: Path
    flags: Flags
    metrics: dict[str, Any]
    measures: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.flags["seed"]

    @property
    def setting(self) -> Flags:
        """What it shares with the runs that differ in the seed alone."""
        return {k: v for k, v in self.flags.items() if k not in UNIMPORTANT}

    @property
    def name(self) -> str:
        """Its folder, with the sweep that it belongs to."""
        parts = [p for p in self.path.parts[-3:] if p not in ("/", "trials")]
        return "/".join(parts[-2:])

    def get(self, name: str) -> float | None:
        """A score by its path (`ood/mse`), or a scalar measure."""
        value = get_score(self.metrics, name)
        if value is None:
            value = self.measures.get(name)
        return value if isinstance(value, int | float) else None

    def get_list(self, name: str) -> list[float | None]:
        """A measure that is a list; empty if there is none."""
        value = self.measures.get(name)
        return value if isinstance(value, list) else []

    def get_stages(self, name: str) -> dict[str, float | None]:
        """A number per stage, in the order of the data flow.

        From `metrics.json` (`factorization`), or `measures.json`
        (`log_volume_sd`); empty if there is none.
        """
        layers = self.metrics.get("layers", {})
        if any(name in numbers for numbers in layers.values()):
            return {stage: n.get(name) for stage, n in layers.items()}
        values, stages = self.get_list(name), self.get_list("stages")
        if len(values) != len(stages):
            return {}
        return dict(zip(stages, values, strict=True))


@dataclass(frozen=True)
class Evidence:
    """All that claims are judged by.

    Attributes:
        runs: Finished runs, no two of which are the same computation.
        thresholds: Rows of all `thresholds.csv`.
        slopes: Rows of all `slopes.csv`.
        notes: What was left out, and why; one line each.
    """

    runs: tuple[Run, ...] = ()
    thresholds: tuple[dict[str, Any], ...] = ()
    slopes: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def read_evidence(patterns: Sequence[str]) -> Evidence:
    """Reads every finished run and threshold table that patterns match.

    Args:
        patterns: Folders, in which runs and tables may lie at any depth;
            may contain *, ? and **.

    Raises:
        ConfigError: If there is no pattern, or one matches nothing.
    """
    runs, notes = [], []
    for path in find_runs(list(patterns)):
        try:
            runs.append(read_run(path))
        except (OSError, ValueError) as error:
            notes.append(f"{path.name} cannot be read: {error}")
    kept, repeated = leave_out_repeats(runs)
    return Evidence(
        tuple(kept),
        tuple(read_tables(patterns, THRESHOLDS_FILE)),
        tuple(read_tables(patterns, SLOPES_FILE)),
        tuple(notes + repeated),
    )


def read_run(path: Path) -> Run:
    """Reads the files of one run.

    Raises:
        ValueError: If one of them is damaged.
    """
    flags, origin = parse_run_flags((path / FLAGS_FILE).read_text("utf-8"))
    metrics = json.loads((path / METRICS_FILE).read_text("utf-8"))
    if not isinstance(metrics, dict):
        raise ValueError(f"{METRICS_FILE} has no scores")
    return Run(path, flags, metrics, read_measures(path) or {}, origin)


def parse_run_flags(text: str) -> tuple[Flags, dict[str, str]]:
    """Flags and comments of a `run.flags`, whatever version wrote it."""
    flags = dict(_get_defaults())
    origin = {}
    for line in text.splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            origin[name] = value
        elif line.startswith("--"):
            name, _, value = line[2:].partition("=")
            flags[name] = _convert(value, flags.get(name, ""))
    return flags, origin


def leave_out_repeats(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Runs without repetitions: two of the same flags are one experiment.

    Of several, the one with measures is kept, then the newest.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        key = repr((sorted(run.setting.items()), run.seed))
        groups.setdefault(key, []).append(run)
    kept, notes = [], []
    for group in groups.values():
        *others, best = sorted(group, key=_rate)
        kept.append(best)
        notes += [f"{other.name} repeats {best.name}" for other in others]
    return kept, notes


def find_tables(patterns: Sequence[str], name: str) -> list[Path]:
    """Files of a name at or below what the patterns match, each once."""
    found = {
        (Path(folder) / name).resolve()
        for pattern in patterns
        for match in glob.glob(os.path.expanduser(pattern), recursive=True)
        for folder, _, files in os.walk(match)
        if name in files
    }
    return sorted(found)


def read_tables(patterns: Sequence[str], name: str) -> Iterator[dict[str, Any]]:
    """Rows of all CSV files of a name; empty cells are None."""
    for path in find_tables(patterns, name):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield {key: _read_cell(cell) for key, cell in row.items()}


@functools.cache
def _get_defaults() -> Flags:
    return RunConfig().to_flags()


def _convert(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return text == "true"
    if isinstance(default, int | float):
        return type(default)(text)
    return text


def _rate(run: Run) -> tuple[bool, float]:
    file = run.path / METRICS_FILE
    return bool(run.measures), file.stat().st_mtime if file.exists() else 0.0


def _read_cell(cell: str | None) -> Any:
    if cell is None or cell == "":
        return None
    try:
        return float(cell)
    except ValueError:
        return {"True": True, "False": False}.get(cell, cell)
