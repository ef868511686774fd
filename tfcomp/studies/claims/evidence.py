"""Evidence: finished runs and threshold studies, read without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import LOCATION_FLAGS, split_names
from tfcomp.evaluation.measure_files import read_measures
from tfcomp.statistics.seed_statistics import IGNORED, get_score
from tfcomp.storage.run_folder import (
    METRICS_FILE,
    read_flags_text,
    read_metrics,
)
from tfcomp.storage.run_search import find_runs
from tfcomp.studies.claims.packed_evidence import (
    Flags,
    ThresholdStudy,
    find_studies,
    parse_run_flags,
    read_study,
    unpack,
)

# Settings that do not change what a run computes.
UNIMPORTANT = frozenset(LOCATION_FLAGS) | set(IGNORED)


@dataclass(frozen=True)
class Run:
    """A finished run, whatever version of tfcomp made it.

    Attributes:
        flags: All its flags (see `parse_run_flags`).
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
        return self.flags["seed"]

    @property
    def num_trainings(self) -> int:
        """How often its training was started."""
        return len(self.metrics.get("train", {}).get("attempts", [0]))

    @property
    def setting(self) -> Flags:
        """What it shares with the runs that differ in the seed alone."""
        return {k: v for k, v in self.flags.items() if k not in UNIMPORTANT}

    @property
    def start(self) -> Run:
        """The untrained network of the same seed: its measures, no scores."""
        start = self.measures.get("start") or {}
        shared = {k: self.measures.get(k) for k in ("stages", "version")}
        measures = {**start, **shared, "start": start}
        return replace(self, metrics={}, measures=measures)

    @property
    def name(self) -> str:
        """Its folder, with the sweep that it belongs to."""
        parts = [p for p in self.path.parts[-3:] if p not in ("/", "trials")]
        return "/".join(parts[-2:])

    def get(self, name: str) -> float | None:
        """A score by its path (`ood/mse`), or a scalar measure."""
        value = get_score(self.metrics, name)
        return get_score(self.measures, name) if value is None else value

    def get_list(self, name: str) -> list[float | None]:
        """A measure that is a list; empty if there is none."""
        value = self.measures.get(name)
        return value if isinstance(value, list) else []

    def get_stages(self, name: str) -> dict[str, float | None]:
        """A number per stage, in the order of the data flow; empty if none."""
        layers = self.metrics.get("layers", {})
        if any(name in numbers for numbers in layers.values()):
            return {stage: n.get(name) for stage, n in layers.items()}
        values, stages = self.get_list(name), self.get_list("stages")
        if len(values) != len(stages):
            return {}
        return dict(zip(stages, values, strict=True))


@dataclass(frozen=True)
class Evidence:
    """All that claims are judged by; notes say what was left out."""

    runs: tuple[Run, ...] = ()
    studies: tuple[ThresholdStudy, ...] = ()
    notes: tuple[str, ...] = ()


def read_evidence(patterns: Sequence[str]) -> Evidence:
    """Reads all finished runs and threshold studies that patterns match.

    They may lie at any depth, and in packed files. No two runs are the same
    computation. Raises as `find_folders` does.
    """
    notes: list[str] = []
    with unpack(patterns) as places:
        runs = _read_all(find_runs(places), read_run, notes)
        studies = _read_all(find_studies(places), read_study, notes)
        kept = leave_out_repeats(runs, notes)
    return Evidence(tuple(kept), tuple(studies), tuple(notes))


def read_some_evidence(runs: str) -> Evidence:
    """Reads what `--runs` matches; ConfigError if that is nothing."""
    evidence = read_evidence(split_names(runs))
    if not evidence.runs and not evidence.studies:
        rule = "must match finished runs or threshold searches"
        raise ConfigError("runs", rule, runs)
    return evidence


def read_run(path: Path) -> Run:
    """Reads a run; DamagedFileError, or ValueError for an impossible flag."""
    flags, origin = parse_run_flags(read_flags_text(path))
    metrics, measures = read_metrics(path), read_measures(path) or {}
    return Run(path, flags, metrics, measures, origin)


def leave_out_repeats(runs: Sequence[Run], notes: list[str]) -> list[Run]:
    """Runs without repetitions, which are noted: the same flags and seed.

    Of several, the newest is kept: an old one may be of other code. Of two
    that are equally old, the one with measures.
    """

    def rate(run: Run) -> tuple[float, bool]:
        file = run.path / METRICS_FILE
        return file.stat().st_mtime if file.exists() else 0, bool(run.measures)

    groups: dict[str, list[Run]] = {}
    for run in runs:
        key = repr((sorted(run.setting.items()), run.seed))
        groups.setdefault(key, []).append(run)
    kept = []
    for group in groups.values():
        *others, best = sorted(group, key=rate)
        kept.append(best)
        notes += [f"{other.name} repeats {best.name}" for other in others]
    return kept


def _read_all(
    paths: Iterable[Path], read: Callable[[Path], Any], notes: list[str]
) -> list[Any]:
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except (OSError, ValueError, RunError) as error:
            notes.append(f"{path.name} cannot be read: {error}")
    return found
