"""Which trial of a sweep may become the model that is pushed.

It is chosen by an ID error alone. Choosing by an OOD score would use the
held-out combinations to select the model, and its OOD scores would then prove
nothing.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pipelines.rules import Rules
from pipelines.steps.trainer import MODELS
from tfcomp.config.errors import RunError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.storage.files import DamagedFileError, read_csv
from tfcomp.storage.model_versions import list_versions

FIRST_COLUMNS = ("trial", "status", "reason")


@dataclass(frozen=True)
class TrialRow:
    """One row of `trials.csv`.

    Attributes:
        reason: Why it failed; empty if it did not.
        setting: Its varied flags and their values, as text.
        scores: Its scores; None where a score does not exist.
    """

    name: str
    reason: str
    is_finished: bool
    setting: dict[str, str]
    seed: int
    scores: dict[str, float | None]


def read_trials(path: Path) -> list[TrialRow]:
    """The rows of a `trials.csv`.

    Raises:
        RunError: If there is none, or it is damaged.
    """
    try:
        return [_read_row(row) for row in read_csv(path)]
    except OSError as error:
        raise RunError(f"no table of trials: {error}") from error
    except (LookupError, ValueError) as error:
        raise DamagedFileError(path, error) from error


def choose_setting(trials: Sequence[TrialRow], rules: Rules) -> list[TrialRow]:
    """The finished trials of the declared setting, or of the best one.

    Raises:
        RunError: If there are none that can be chosen.
    """
    groups: dict[str, list[TrialRow]] = {}
    for trial in trials:
        if rules.fit_setting(trial.setting):
            group = groups.setdefault(repr(trial.setting), [])
            if trial.is_finished and get_error(trial, rules) < math.inf:
                group.append(trial)
    if not groups:
        raise RunError(
            f"the sweep {rules.sweep} has no trials with {rules.setting}"
        )
    able = [g for g in groups.values() if len(g) >= rules.min_seeds]
    if not able:
        raise RunError(_explain_absence(trials, rules))
    return min(
        able, key=lambda group: fmean(get_error(t, rules) for t in group)
    )


def choose_trial(setting: Sequence[TrialRow], rules: Rules) -> TrialRow:
    """The trial of a setting with the lowest ID error."""
    return min(setting, key=lambda trial: get_error(trial, rules))


def get_error(trial: TrialRow, rules: Rules) -> float:
    """The ID error that decides; infinite, so never the best, if missing."""
    error = trial.scores.get(rules.choose_by)
    return math.inf if error is None or math.isnan(error) else error


def find_candidate(runs_dir: Path, evaluation: Path) -> Path:
    """The run folder of the candidate that an `evaluation.json` names."""
    content = json.loads(evaluation.read_text("utf-8"))
    return runs_dir / content["candidate"]["run"]


def find_model(run: Path) -> Path:
    """The SavedModel of a run, a trial where the trainer wrote.

    Trials write none, since one of many is wanted: it is made here.

    Raises:
        RunError: If the run is not finished, or damaged.
    """
    runs_dir, sweep = run.parents[3], run.parents[1].name
    folder = runs_dir / MODELS / sweep / run.name
    versions = list_versions(folder)
    if versions:
        return versions[-1]
    with start_tensorflow():
        from tfcomp.training.export import export_run

    return export_run(run, folder)


def _explain_absence(trials: Sequence[TrialRow], rules: Rules) -> str:
    finished = sum(trial.is_finished for trial in trials)
    reasons = [trial.reason for trial in trials if trial.reason]
    line = (
        f"no setting of {rules.sweep} has {rules.min_seeds} finished trials "
        f"with a score {rules.choose_by}, {finished} of {len(trials)} trials "
        "are finished"
    )
    return line + (f"; one failed: {reasons[0]}" if reasons else "")


def _read_row(row: dict[str, str]) -> TrialRow:
    columns = list(row)
    seed_column = columns.index("seed")
    varied = columns[len(FIRST_COLUMNS) : seed_column]
    return TrialRow(
        name=row["trial"],
        reason=row["reason"],
        is_finished=row["status"] == "finished",
        setting={name: row[name] for name in varied},
        seed=int(row["seed"]),
        scores={
            name: float(row[name]) if row[name] else None
            for name in columns[seed_column + 1 :]
        },
    )
