"""Reads finished runs, and the tables that earlier readers have written."""

from __future__ import annotations

import functools
import glob
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage import run_folder
from tfcomp.storage.files import DamagedFileError, read_json
from tfcomp.storage.run_folder import TRIALS
from tfcomp.tables import flatten
from tfcomp.tables.flatten import END, Row, Run
from tfcomp.tables.packs import KEYS, find_packs, read_pack

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MEASURES_FILE = "measures.json"
OWN_METRICS = "own_measures"  # declarations of users' metrics by name


@dataclass(frozen=True, eq=False)
class Results:
    """Finished runs as tables; `notes` has those that were left out."""

    loaded: Sequence[Run] = ()
    notes: Sequence[str] = ()

    @functools.cached_property
    def runs(self) -> DataFrame:
        """The table of runs."""
        import pandas as pd

        if not self.loaded:
            return pd.DataFrame([], columns=flatten.IDENTITY)
        return pd.DataFrame([run.row for run in self.loaded])

    @functools.cached_property
    def numbers(self) -> DataFrame:
        """The table of numbers."""
        import pandas as pd

        rows = []
        for run in self.loaded:
            for row in run.numbers:
                rows.append((run.row["run"], *row))
        table = pd.DataFrame(rows, columns=[*KEYS, "value"])
        return table.astype({"value": float})

    @functools.cached_property
    def scores(self) -> DataFrame:
        """Numbers at the end [runs, paths]: `ood/mse`, `layers/image/probe`."""
        table = self.numbers[self.numbers["when"] == END]
        path = _join_path(table)
        stage_path = "layers/" + table["stage"] + "/" + path
        path = path.where(table["stage"] == "", stage_path)
        table = table.assign(path=path)
        wide = table.pivot(
            index="run",
            columns="path",
            values="value",
        )
        return wide.reindex(self.runs["run"])

    @property
    def own_metrics(self) -> dict[str, Any]:
        """Declarations of users' metrics by name."""
        metrics: dict[str, Any] = {}
        for run in self.loaded:
            metrics.update(run.own_metrics)
        return metrics


def _join_path(numbers: DataFrame) -> Series:
    """Joins the names of numbers with their subset, as `ood/mse`."""
    joined = numbers["subset"] + "/" + numbers["name"]
    return joined.where(numbers["subset"] != flatten.ALL, numbers["name"])


def read_runs(*paths: str | Path) -> tuple[DataFrame, DataFrame]:
    """Reads finished runs, without TensorFlow.

    Runs that cannot be read, and the epochs of runs whose `history.csv` is
    damaged, are left out; a line on standard error says why.

    Args:
        *paths: Folders of runs, or folders that contain them at any depth, as
            sweeps; folders of packed tables; patterns with *.

    Returns:
        The tables `runs` and `numbers`, which `tfcomp.tables` explains.

    Raises:
        ConfigError: If nothing matches.
        RunError: If a packed table is damaged.

    Example:
        The OOD error of 20 donuts, from the evidence of a clone:

        >>> path = "reproduction/evidence/donut_bump.csv.xz"
        >>> runs, numbers = tfcomp.read_runs(path)
        >>> ood = numbers.query("subset == 'ood' and name == 'relative_mse'")
        >>> ood = ood[ood["when"] == "end"].merge(runs, on="run")
        >>> len(ood), round(float(ood["value"].median()), 2)
        (20, 0.84)
    """
    results = read_finished([str(path) for path in paths])
    return results.runs, results.numbers


@dataclass(frozen=True, eq=False)
class Sweep:
    """The finished runs of a sweep, as the tables of `tfcomp.read_runs`."""

    path: Path
    runs: DataFrame
    numbers: DataFrame

    @property
    def varied(self) -> list[str]:
        """Flags that differ between runs, without the seed."""
        varied = []
        for name in self.runs:
            is_flag = name not in flatten.NO_FLAGS
            if is_flag and self.runs[name].nunique(dropna=False) > 1:
                varied.append(str(name))
        return varied

    def to_frame(self, kind: str = "runs") -> DataFrame:
        """Makes a table of varying settings, seeds, and numbers at the end.

        Columns of numbers are named as in `metrics.json`, as `ood/mse`; the
        column `run` has the folder for `tfcomp.load_run`.

        Args:
            kind: `runs` for a row for each run, with scores of images; `stages`
                for a row for each stage of a run, with metrics of stages.

        Raises:
            ValueError: For another kind.
        """
        if kind not in ("runs", "stages"):
            raise ValueError(f"kind must be runs or stages, got {kind!r}")

        numbers = self.numbers[self.numbers["when"] == END]
        is_stage = numbers["stage"] != ""
        if kind == "stages":
            index = ["run", "stage"]
            numbers = numbers[is_stage]
        else:
            index = ["run"]
            numbers = numbers[~is_stage]
        numbers = numbers.assign(path=_join_path(numbers))
        # In the order of the data flow.
        wide = numbers.set_index([*index, "path"])["value"].unstack(sort=False)
        wide = wide.reset_index().rename_axis(columns=None)

        settings = self.runs[["run", *self.varied, "seed", "folder"]]
        table = settings.merge(
            wide,
            on="run",
            how="left",
            suffixes=(" (flag)", ""),  # a metric of users may be called rank
        )
        return table.drop(columns="run").rename(columns={"folder": "run"})


def load_sweep(path: str | Path) -> Sweep:
    """Loads the finished runs of a sweep, without TensorFlow.

    Args:
        path: The folder of the sweep, as `tensorboard_logs/my_sweep`.

    Raises:
        RunError: The folder is no sweep.
        ConfigError: None of its runs is finished.

    Example:
        >>> sweep = tfcomp.load_sweep("tensorboard_logs/my_sweep")
        >>> sweep.to_frame().groupby("depth")["ood/relative_mse"].mean()
    """
    folder = Path(path)
    trials = folder / TRIALS
    if not trials.is_dir():
        rule = f"has no folder {TRIALS}; for a run, use tfcomp.load_run"
        raise RunError(f"path must be a sweep folder, {folder} {rule}")
    runs, numbers = read_runs(glob.escape(str(trials)))
    return Sweep(folder, runs, numbers)


def read_finished(patterns: Sequence[str], history: bool = True) -> Results:
    """Reads finished runs, at least one; prints what is left out.

    Args:
        patterns: Folders of runs, folders that contain them, patterns with *.
        history: True to read the numbers of epochs, too.

    Raises:
        ConfigError: If there is no finished run; it has the first reason.
    """
    results = read_results(patterns, history)
    if not results.loaded:
        why = f" ({results.notes[0]})" if results.notes else ""
        rule = f"must match at least one finished run{why}"
        raise ConfigError("runs", rule, ",".join(patterns))
    print_left_out(results.notes)
    return results


def print_left_out(notes: Sequence[str]) -> None:
    """Prints what was left out, a line each, on standard error."""
    for note in notes:
        print(f"left out: {note}", file=sys.stderr)


def read_results(
    patterns: Sequence[str],
    history: bool = True,
    without: Sequence[Path] = (),
) -> Results:
    """Reads finished runs, the newest of repeats; there may be none.

    Callers print `notes`, which name what was left out and why.

    Args:
        patterns: Folders of runs, folders that contain them, patterns with *.
        history: True to read the numbers of epochs, too.
        without: Folders whose runs are left out.
    """
    notes: list[str] = []
    runs: list[Run] = []
    for folder in run_folder.find_runs(patterns):
        if not set(without).isdisjoint(folder.parents):
            continue
        try:
            run = read_run(folder, history)
        except (OSError, ValueError, RunError) as error:
            notes.append(f"{folder.name} cannot be read: {error}")
            continue
        notes += run.notes
        runs.append(run)
    for pack in find_packs(patterns):
        runs += read_pack(pack)
    return Results(_leave_out_repeats(runs, notes), notes)


def read_run(folder: Path, history: bool = True) -> Run:
    """Reads one run.

    Damaged measures and epochs are left out, since the scores at the end of
    training do not depend on them; `Run.notes` names these parts.

    Args:
        folder: The run folder.
        history: True to read the numbers of epochs, too.

    Raises:
        DamagedFileError: If its flags or its `metrics.json` are damaged.
        ValueError: If a flag has no value of its type.
    """
    notes: list[str] = []
    flags, origin = flatten.parse_run_flags(run_folder.read_flags_text(folder))
    metrics = run_folder.read_metrics(folder)
    measures = metrics.get("measures") or {}
    if not measures:  # an older run has them in a file
        measures = _read_measures(folder, notes)

    study = folder.name
    if folder.parent.name == TRIALS:
        study = folder.parents[1].name
    row = flatten.describe_run(
        flags,
        folder=folder.as_posix(),
        study=study,
        origin=origin,
        measured=str(measures.get("version", "")),
    )
    numbers = list(flatten.list_numbers(metrics, measures))
    if history:
        numbers += _read_epochs(folder, notes)
    return Run(
        row,
        numbers,
        own_metrics=metrics.get(OWN_METRICS, {}),
        age=os.stat(folder / run_folder.FLAGS_FILE).st_mtime,
        notes=notes,
    )


def _read_measures(folder: Path, notes: list[str]) -> dict[str, Any]:
    """Reads the measures of an older run; adds a note if damaged."""
    path = folder / MEASURES_FILE
    if not path.exists():
        return {}
    try:
        measures = read_json(path)
    except (OSError, DamagedFileError) as error:
        notes.append(f"measures of {folder.name} cannot be read: {error}")
        return {}
    return measures


def _read_epochs(folder: Path, notes: list[str]) -> list[Row]:
    """Reads the numbers of epochs; adds a note if damaged."""
    path = folder / run_folder.HISTORY_FILE
    if not path.exists():
        return []
    try:
        return list(flatten.list_history(path))
    except (OSError, DamagedFileError) as error:
        notes.append(f"epochs of {folder.name} cannot be read: {error}")
        return []


def _leave_out_repeats(runs: Sequence[Run], notes: list[str]) -> list[Run]:
    """Keeps distinct runs, the newest or with measures; adds notes."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.row["run"], []).append(run)

    distinct = []
    for repeats in groups.values():
        ordered = sorted(
            repeats, key=lambda run: (run.age, bool(run.row[flatten.MEASURED]))
        )
        best = ordered[-1]
        distinct.append(best)
        for run in ordered[:-1]:
            notes.append(f"{_show_name(run)} repeats {_show_name(best)}")
    return distinct


def _show_name(run: Run) -> str:
    """Formats study and name, which may be the same."""
    names = dict.fromkeys([run.row["study"], run.row["name"]])
    return "/".join(names)
