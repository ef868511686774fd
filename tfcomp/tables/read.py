"""Reads finished runs, from their folders or from packs.

A pack is a file `<study>.csv.xz` with a row for each run of a study. Its
columns are flags and versions, and then numbers, whose names have the time, the
subset and the stage: `end|ood||mse`, `start|all|stage_0|factorization`. Cells
without a number are empty; a null of the run is `null`. All digits are kept.
"""

from __future__ import annotations

import csv
import functools
import glob
import io
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage import files, run_folder
from tfcomp.storage.files import DamagedFileError
from tfcomp.storage.run_folder import TRIALS
from tfcomp.tables import flatten
from tfcomp.tables.flatten import END, Row, Run

if TYPE_CHECKING:
    from pandas import DataFrame, Series

OWN_METRICS = "own_measures"  # declarations of users' metrics by name
PACK_ENDING = ".csv.xz"
KEYS = [
    "run",
    "when",
    "subset",
    "stage",
    "name",
]
Key = tuple[str, str, str, str]  # when, subset, stage, name of a number
NULL = "null"  # a number of a pack that is not finite


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
        rows = [run.row for run in self.loaded]
        return pd.DataFrame(rows)

    @functools.cached_property
    def numbers(self) -> DataFrame:
        """The table of numbers."""
        import pandas as pd

        rows = []
        for run in self.loaded:
            key = run.row["run"]
            for numbers in run.numbers:
                row = (key, *numbers)
                rows.append(row)
        columns = [*KEYS, "value"]
        table = pd.DataFrame(rows, columns=columns)
        return table.astype({"value": float})

    @functools.cached_property
    def scores(self) -> DataFrame:
        """Numbers at the end [runs, paths]: `ood/mse`, `layers/image/probe`."""
        is_last = self.numbers["when"] == END
        table = self.numbers[is_last]
        stage = table["stage"]
        stage_path = "layers/" + stage + "/" + table["name"]
        path = _join_path(table)
        path = path.where(stage == "", stage_path)
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
    subset = numbers["subset"]
    name = numbers["name"]
    joined = subset + "/" + name
    return joined.where(subset != flatten.ALL, name)


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
        The OOD error of 40 donuts, from the evidence of a clone:

        >>> path = "reproduction/evidence/donut_bump.csv.xz"
        >>> runs, numbers = tfcomp.read_runs(path)
        >>> ood = numbers.query("subset == 'ood' and name == 'relative_mse'")
        >>> ood = ood[ood["when"] == "end"].merge(runs, on="run")
        >>> len(ood), round(float(ood["value"].median()), 2)
        (40, 0.84)
    """
    patterns = [str(path) for path in paths]
    results = read_finished(patterns)
    return results.runs, results.numbers


def find_varied(runs: DataFrame) -> list[str]:
    """Lists the flags that differ between runs, without the seed.

    Args:
        runs: A row for each run, as `Results.runs`.
    """
    varied = []
    for name in runs:
        if name in flatten.NO_FLAGS:
            continue
        num_values = runs[name].nunique(dropna=False)
        if num_values > 1:
            varied.append(str(name))
    return varied


@dataclass(frozen=True, eq=False)
class Sweep:
    """The finished runs of a sweep, as the tables of `tfcomp.read_runs`."""

    path: Path
    runs: DataFrame
    numbers: DataFrame

    @property
    def varied(self) -> list[str]:
        """Flags that differ between runs, without the seed."""
        return find_varied(self.runs)

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

        is_last = self.numbers["when"] == END
        is_stage = self.numbers["stage"] != ""
        index = ["run"]
        if kind == "stages":
            index.append("stage")
            numbers = self.numbers[is_last & is_stage]
        else:
            numbers = self.numbers[is_last & ~is_stage]
        path = _join_path(numbers)
        numbers = numbers.assign(path=path)
        values = numbers.set_index([*index, "path"])["value"]
        wide = values.unstack(sort=False)  # in the order of the data flow
        wide = wide.reset_index()
        wide = wide.rename_axis(columns=None)

        columns = [
            "run",
            *self.varied,
            "seed",
            "folder",
        ]
        flags = self.runs[columns]
        table = flags.merge(
            wide,
            on="run",
            how="left",
            suffixes=(" (flag)", ""),  # a metric of users may be called rank
        )
        table = table.drop(columns="run")
        return table.rename(columns={"folder": "run"})


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

    pattern = glob.escape(str(trials))
    runs, numbers = read_runs(pattern)
    return Sweep(
        path=folder,
        runs=runs,
        numbers=numbers,
    )


def read_finished(
    patterns: Sequence[str],
    history: bool = True,
) -> Results:
    """Reads finished runs, at least one; prints what is left out.

    Args:
        patterns: Folders of runs, folders that contain them, patterns with *.
        history: True to read the numbers of epochs, too.

    Raises:
        ConfigError: If there is no finished run; it has the first reason.
    """
    results = read_results(patterns, history)
    if not results.loaded:
        rule = "must match at least one finished run"
        if results.notes:
            rule += f" ({results.notes[0]})"
        value = ",".join(patterns)
        raise ConfigError("runs", rule, value)
    print_left_out(results.notes)
    return results


def print_left_out(notes: Sequence[str]) -> None:
    """Prints what was left out, a line each, on standard error."""
    for note in notes:
        print(f"left out: {note}", file=sys.stderr)


def read_results(
    patterns: Sequence[str],
    history: bool = True,
) -> Results:
    """Reads finished runs, the newest of repeats; there may be none.

    Callers print `notes`, which name what was left out and why.

    Args:
        patterns: Folders of runs, folders that contain them, patterns with *.
        history: True to read the numbers of epochs, too.
    """
    notes: list[str] = []
    runs: list[Run] = []
    for folder in run_folder.find_runs(patterns):
        run, reasons = try_run(folder, history)
        notes += reasons
        if run is not None:
            runs.append(run)

    for pack in find_packs(patterns):
        runs += read_pack(pack)
    distinct = _leave_out_repeats(runs, notes)
    return Results(distinct, notes)


def try_run(
    folder: Path,
    history: bool = True,
) -> tuple[Run | None, list[str]]:
    """Reads one run as `read_run` does, unless it is damaged.

    Args:
        folder: The run folder.
        history: True to read the numbers of epochs, too.

    Returns:
        The run, None if it is damaged, and what was left out and why.
    """
    try:
        run = read_run(folder, history)
    except (OSError, ValueError, RunError) as error:
        note = f"{folder.name} cannot be read: {error}"
        return None, [note]
    return run, list(run.notes)


def read_run(folder: Path, history: bool = True) -> Run:
    """Reads one run.

    Damaged epochs are left out, since the scores at the end of training do not
    depend on them; `Run.notes` says so.

    Args:
        folder: The run folder.
        history: True to read the numbers of epochs, too.

    Raises:
        DamagedFileError: If its flags or its `metrics.json` are damaged.
        ValueError: If a flag has no value of its type.
    """
    notes: list[str] = []
    text = run_folder.read_flags_text(folder)
    flags, origin = flatten.parse_run_flags(text)
    metrics = run_folder.read_metrics(folder)
    measures = metrics.get("measures") or {}
    version = measures.get("version", "")
    study = folder.name
    parent = folder.parent
    if parent.name == TRIALS:
        study = parent.parent.name
    row = flatten.describe_run(
        flags,
        folder=folder.as_posix(),
        study=study,
        origin=origin,
        measured=str(version),
    )

    numbers = list(flatten.list_numbers(metrics, measures))
    if history:
        numbers += _read_epochs(folder, notes)
    flagfile = folder / run_folder.FLAGS_FILE
    return Run(
        row,
        numbers,
        own_metrics=metrics.get(OWN_METRICS, {}),
        age=flagfile.stat().st_mtime,
        notes=notes,
    )


def _read_epochs(folder: Path, notes: list[str]) -> list[Row]:
    """Reads the numbers of epochs; adds a note if damaged."""
    path = folder / run_folder.HISTORY_FILE
    if not path.exists():
        return []
    try:
        numbers = flatten.list_history(path)
        return list(numbers)
    except (OSError, DamagedFileError) as error:
        note = f"epochs of {folder.name} cannot be read: {error}"
        notes.append(note)
        return []


def _leave_out_repeats(
    runs: Sequence[Run],
    notes: list[str],
) -> list[Run]:
    """Keeps distinct runs, the newest or with measures; adds notes."""

    def find_rank(run: Run) -> tuple[float, bool]:
        is_measured = bool(run.row[flatten.MEASURED])
        return run.age, is_measured

    newest = {}
    for run in sorted(runs, key=find_rank):
        newest[run.row["run"]] = run
    distinct = []
    for run in runs:
        key = run.row["run"]
        best = newest[key]
        if run is best:
            distinct.append(run)
            continue
        note = f"{run.place} repeats {best.place}"
        notes.append(note)
    return distinct


def find_packs(patterns: Sequence[str]) -> list[Path]:
    """Finds packed files that patterns match, or that lie in such folders."""

    def has_pack(names: set[str]) -> bool:
        return any(name.endswith(PACK_ENDING) for name in names)

    paths: list[Path] = []
    for pattern in patterns:
        matches = run_folder.match_paths(pattern)
        paths += map(Path, matches)
    folders = run_folder.find_folders(patterns, has_pack)
    for folder in folders:
        paths += folder.iterdir()

    packs = set()
    for path in paths:
        if path.name.endswith(PACK_ENDING):
            packs.add(path.resolve())
    return sorted(packs)


def read_pack(path: Path) -> list[Run]:
    """Reads the runs of a packed file.

    Raises:
        DamagedFileError: If the file is not one.
    """
    study = path.name.removesuffix(PACK_ENDING)
    try:
        content = files.read_xz(path)
        buffer = io.StringIO(content.decode(), newline="")
        table = csv.reader(buffer, strict=True)
        head, *lines = table
        missing = {"name", "seed"}.difference(head)
        if missing:
            raise ValueError(f"it has no column {min(missing)}")

        # Once for all runs: a pack has up to a thousand columns.
        keys = _split_columns(head)
        runs = {}
        for line in lines:
            cells = dict(zip(head, line, strict=True))
            run = _restore(study, cells, keys)
            key = run.row["run"]
            if key in runs:
                raise ValueError("it has a run twice")
            runs[key] = run
    except (OSError, ValueError, csv.Error) as error:
        raise DamagedFileError(path, error) from error
    return list(runs.values())


def _split_columns(columns: Sequence[str]) -> dict[str, Key]:
    """Splits the names of columns of numbers, as `end|ood||mse`."""
    keys = {}
    for column in columns:
        if "|" in column:
            when, subset, stage, name = column.split("|", 3)
            keys[column] = when, subset, stage, name
    return keys


def _restore(
    study: str,
    cells: Mapping[str, str],
    keys: Mapping[str, Key],
) -> Run:
    """Restores a run, whose flags have types.

    Args:
        study: Name of the pack.
        cells: Texts by column.
        keys: When, subset, stage and name of each column of numbers.
    """
    flags = dict(flatten.get_defaults())
    numbers = []
    no_flags = {
        *flatten.IDENTITY,
        *flatten.ORIGIN,
        flatten.MEASURED,
    }
    for column, text in cells.items():
        key = keys.get(column)
        if key and text:
            value = math.nan
            if text != NULL:
                value = float(text)
            numbers.append((*key, value))
        if key or column in no_flags:
            continue
        # A run lacks flags of other versions.
        if text or column in flags:
            flags[column] = flatten.parse_value(column, text)

    flags["seed"] = int(cells["seed"])
    measured = cells.get(flatten.MEASURED, "")
    row = flatten.describe_run(
        flags,
        study=study,
        origin=cells,
        measured=measured,
    )
    row["name"] = cells["name"]
    return Run(row, numbers)
