"""evaluator: is the candidate good enough, and not worse than the last one?

Thresholds are for means over seeds, since no single run proves anything.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kfp import dsl

from pipelines.profile import check_profile, parse_profile
from pipelines.rules import (
    Rules,
    TrialRow,
    choose_setting,
    choose_trial,
    read_trials,
)
from pipelines.running_step import run_step
from pipelines.steps.trainer import LOGS, find_model
from tfcomp.config.errors import RunError
from tfcomp.config.plugins import admit_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.storage.files import write_text
from tfcomp.storage.model_versions import is_copy, list_versions
from tfcomp.storage.run_folder import check_run


def execute(
    profile: str,
    runs: dsl.Artifact,
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Artifact,
    metrics: dsl.Metrics,
) -> bool:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("evaluator") as step:
        parsed = parse_profile(profile)
        check_profile(parsed)  # imports its plugins
        rules = parsed.rules
        pushed = Path(export_dir, rules.push_as)
        verdict = evaluate_sweep(Path(runs.path), rules, pushed)
        step.place(evaluation, work_dir, "evaluation.json")
        verdict.write(Path(evaluation.path))
        evaluation.metadata["candidate"] = verdict.run
        found = {check.score: check.value for check in verdict.checks}
        numbers = {k: v for k, v in found.items() if v is not None}
        step.log(metrics, {"blessed": float(verdict.blessed), **numbers})
        step.note = verdict.describe()
        if not verdict.blessed:
            step.stop = step.note
        return verdict.blessed


@dataclass(frozen=True)
class Check:
    """One rule and what came of it."""

    score: str
    rule: str  # what must hold, in words
    value: float | None  # the mean over seeds, or the candidate's score
    half_width: float | None  # of the 95 % interval of a mean
    count: int
    passed: bool

    def __str__(self) -> str:
        value = "missing" if self.value is None else f"{self.value:.4g}"
        spread = f" ± {self.half_width:.2g}" if self.half_width else ""
        word = "is" if self.passed else "must be"
        return f"{self.score} {value}{spread} {word} {self.rule}"


@dataclass(frozen=True)
class Evaluation:
    """The verdict of the evaluator; only reasons if there is no candidate."""

    candidate: TrialRow | None
    checks: list[Check]
    reasons: list[str]  # why it is not blessed; empty if it is
    compared: list[Check] = field(default_factory=list)  # with the last version
    run: str = ""  # folder of the candidate, from where the trainer wrote
    pushed: str = ""  # folder of the version that was pushed before, if any

    @property
    def blessed(self) -> bool:
        return not self.reasons

    def describe(self) -> str:
        """The verdict in one line."""
        if not self.blessed:
            return "not blessed: " + "; ".join(self.reasons)
        scores = ", ".join(map(str, self.checks))
        compared = f"; not worse than {self.pushed}" if self.pushed else ""
        return f"blessed {self.candidate.name}: {scores}{compared}"

    def write(self, path: Path) -> None:
        """Writes `evaluation.json`."""
        content = {"blessed": self.blessed, **asdict(self)}
        if self.candidate:
            content["candidate"]["run"] = self.run
        write_text(path, json.dumps(content, indent=2) + "\n")


def evaluate_sweep(runs_dir: Path, rules: Rules, pushed: Path) -> Evaluation:
    """Judges the candidate of a sweep; earlier versions are in `pushed`."""
    try:
        trials = read_trials(runs_dir / LOGS / rules.sweep / "trials.csv")
        setting = choose_setting(trials, rules)
    except RunError as error:
        return Evaluation(None, [], [str(error)])
    candidate = choose_trial(setting, rules)
    run = f"{LOGS}/{rules.sweep}/trials/{candidate.name}"
    checks, compared, problems = check_thresholds(setting, rules), [], []
    last = next(reversed(list_versions(pushed)), None)
    if last:
        try:
            place = runs_dir / run
            compared = compare_with_pushed(place, candidate, last, rules)
        except RunError as error:
            problems = [str(error)]
    failed = [str(c) for c in [*checks, *compared] if not c.passed]
    reasons, before = [*failed, *problems], str(last or "")
    return Evaluation(candidate, checks, reasons, compared, run, before)


def check_thresholds(setting: Sequence[TrialRow], rules: Rules) -> list[Check]:
    """Compares means over seeds with the thresholds."""
    checks = []
    for threshold in rules.list_thresholds():
        score, rule = threshold.score, str(threshold)
        values = [trial.scores.get(score) for trial in setting]
        found = compute_statistics(values)  # none if a seed lacks its score
        mean = found.mean if found else None
        spread = found.half_width if found else None
        passed = threshold.passes(mean)
        checks.append(Check(score, rule, mean, spread, len(values), passed))
    return checks


def compare_with_pushed(
    run: Path, candidate: TrialRow, pushed: Path, rules: Rules
) -> list[Check]:
    """Compares scores of the candidate with those of a pushed model."""
    if is_copy(pushed, find_model(run)):
        return []  # it is the same model
    old = score_pushed_model(pushed, run)
    checks = []
    for threshold in rules.list_thresholds():
        before = old.get(threshold.score)
        new = candidate.scores.get(threshold.score)
        if before is None or new is None:
            continue  # nothing to be worse than; thresholds see to the rest
        rule = (
            f"not worse than {before:.4g} of {pushed.parent.name}/"
            f"{pushed.name} by more than {rules.tolerance:.0%}"
        )
        worse = threshold.is_worse(new, before, rules.tolerance)
        checks.append(Check(threshold.score, rule, new, None, 1, not worse))
    return checks


def score_pushed_model(version: Path, run: Path) -> dict[str, float | None]:
    """Scores such as `ood_mse`, or a RunError, of a model on a run's grid."""
    with start_tensorflow():
        import tensorflow as tf

        from tfcomp.analysis import evaluate_in_batches
        from tfcomp.datasets import make_dataset
        from tfcomp.evaluation.point_scores import score_subsets

    config = check_run(run)
    admit_plugins(run, config.plugins)
    dataset = make_dataset(config)
    dataset.prepare()
    splits = dataset.splits
    try:
        model = tf.saved_model.load(str(version))  # keeps the variables
        draw = model.signatures["serving_default"]
        found = evaluate_in_batches(
            lambda factors: draw(factors=factors), splits.grid
        )
    except Exception as error:  # whatever a damaged or foreign model leads to
        reason = str(error).strip().splitlines()[-1]
        raise RunError(
            f"{version} was pushed under this name and cannot be asked for "
            f"the images of this run ({reason}): push under another name, or "
            "remove it if it is damaged"
        ) from error
    images, truth = found["image"], dataset.render_array(splits.grid)
    if images.shape != truth.shape:
        raise RunError(
            f"{version} was pushed under this name and draws images of "
            f"{list(images.shape[1:])}, not {list(truth.shape[1:])}: push "
            "under another name"
        )
    subsets = {"id": splits.is_id, "ood": splits.is_ood}
    scores = score_subsets(dataset, images, truth, subsets)
    return {
        f"{subset}_{name}": value
        for subset, values in scores.items()
        for name, value in values.items()
    }
