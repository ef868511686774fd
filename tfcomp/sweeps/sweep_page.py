"""What a sweep writes about its finished trials: statistics, page, HParams."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.summary.writer.record_writer import RecordWriter

from tfcomp.config.errors import ConfigError
from tfcomp.figures.exhibits import Exhibit, Plot, save_exhibit, use_own_style
from tfcomp.metrics.registry import find_limits, list_leading
from tfcomp.report import coverage, score_table
from tfcomp.report.page import Answer, Section, render_page
from tfcomp.report.score_table import ScoredRun, read_scored
from tfcomp.report.table_plots import plot_curves, plot_scores
from tfcomp.report.verbalize import describe_common
from tfcomp.statistics.seed_statistics import (
    choose_flags,
    compare_settings,
    make_label,
    summarize,
)
from tfcomp.storage import files
from tfcomp.storage.run_folder import TRIALS, read_metrics
from tfcomp.sweeps.grid import Trial, list_scores, read_result
from tfcomp.tables.flatten import Run
from tfcomp.tables.read import Results, print_left_out

PAGE = "report.html"
# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"
CURVES = ("train/loss", "id/relative_mse", "ood/relative_mse")
COVERED = ("ood/r2", "ood/relative_mse", "ood/position_accuracy")


@dataclass(frozen=True)
class SweepNumbers:
    """The numbers of a sweep, and statistics over its seeds.

    Attributes:
        trials: All trials, finished or not, in the order of the grid.
        flags: Those that tell the settings apart.
        results: The finished trials as tables.
        runs: Their errors.
        summary: For each setting and score: mean, sd, low, high, n.
        paired: Pairs of settings at equal seeds.
        has_coverage: Whether the page shows scores by coverage.
    """

    trials: Sequence[Trial]
    flags: Sequence[str]
    results: Results
    runs: Sequence[ScoredRun]
    summary: pd.DataFrame
    paired: pd.DataFrame
    has_coverage: bool = False

    @property
    def paths(self) -> list[str]:
        """The scores to show, as `ood/hit_rate`."""
        scores = set(self.summary["score"])
        paths = []
        for name in list_leading("image"):
            if name in scores:
                paths.append(name.replace("_", "/", 1))
        return paths


def compute_numbers(
    trials: Sequence[Trial],
    pairs: str,
    has_coverage: bool = False,
) -> SweepNumbers:
    """Computes all statistics of the finished trials of a sweep.

    Args:
        trials: All trials, finished or not, in the order of the grid.
        pairs: Which settings are compared, as in `compare_settings`.
        has_coverage: Whether the page shows scores by coverage.
    """
    settings = [trial.setting for trial in trials]
    varied = choose_flags(settings)
    finished = _read_finished(trials)
    names: dict[str, None] = {}
    for _, run in finished:
        names |= dict.fromkeys(list_scores(run))

    rows = []
    scored = []
    for trial, run in finished:
        scores = list_scores(run)
        for name in names:
            # What other trials have is NaN for a trial that lacks it.
            value = scores.get(name, math.nan)
            rows.append([*trial.setting.values(), trial.seed, name, value])
        scored_run = read_scored(
            setting=make_label(trial.setting, varied),
            seed=trial.seed,
            metrics=read_metrics(trial.path),
            link=f"{TRIALS}/{trial.name}/",
        )
        scored.append(scored_run)

    flags = list(settings[0])
    table = pd.DataFrame(rows, columns=[*flags, "seed", "score", "value"])
    return SweepNumbers(
        trials=trials,
        flags=varied,
        results=Results([run for _, run in finished]),
        runs=scored,
        summary=summarize(table, [*flags, "score"], find_limits),
        paired=compare_settings(table, flags, pairs),
        has_coverage=has_coverage,
    )


def _read_finished(trials: Sequence[Trial]) -> list[tuple[Trial, Run]]:
    """Reads the numbers of the finished trials; prints what is left out."""
    finished = []
    for trial in trials:
        run, reasons = read_result(trial, history=True)
        print_left_out(reasons)
        if run is not None:
            run.row.update(trial.setting)  # a random region without its seed
            finished.append((trial, run))
    return finished


def write_page(folder: Path, sweep: SweepNumbers) -> None:
    """Writes `figures/`, and the page that shows them.

    Args:
        folder: The folder of the sweep, with `trials/`.
        sweep: Its statistics.
    """
    figures = files.make_folder(folder / "figures")
    with use_own_style():
        answer, sections = make_page(sweep)
        exhibits = list(answer.exhibits)
        for section in sections:
            exhibits += section.exhibits
        for exhibit in exhibits:
            save_exhibit(exhibit, figures)
    page = render_page(
        f"Sweep {folder.name}",
        describe_common([trial.config.identity() for trial in sweep.trials]),
        answer,
        sections,
        figures,
        place="figures/",
    )
    files.write_text(folder / PAGE, page)


def make_page(sweep: SweepNumbers) -> tuple[Answer, list[Section]]:
    """Makes the first screen, and sections of figures and comparisons.

    Args:
        sweep: The statistics of a sweep.
    """
    exhibits = [score_table.make_table(sweep.runs)]
    exhibits += plot(sweep, plot_scores, "scores", sweep.paths)

    lines = []
    for number in CURVES:
        name = f"epoch_{number.replace('/', '_')}"
        lines += plot(
            sweep,
            plot_curves,
            name,
            number,
            over="epoch",
        )
    for number in list_leading("stage", "stages"):
        lines += plot(sweep, plot_curves, f"stage_{number}", number)
    paired = compare_with_first(sweep.runs)
    figures = Section(
        anchor="figures",
        title="Figures",
        introduction="Errors by epoch, and numbers of stages.",
        exhibits=lines,
    )

    planned = [make_label(trial.setting, sweep.flags) for trial in sweep.trials]
    sentences = [score_table.describe_fits(sweep.runs, planned)]
    if paired.finding:
        sentences.append(paired.finding)
    if len(sweep.runs) < len(planned):
        count = f"{len(sweep.runs)} of {len(planned)}"
        sentences.append(f"{count} trials have scores.")
    sections = [figures, paired]
    if sweep.has_coverage:
        sections.insert(0, make_coverage(sweep))
    return Answer(sentences, exhibits), sections


def make_coverage(sweep: SweepNumbers) -> Section:
    """Makes the section of a sweep with `--coverage`."""
    flags = [flag for flag in sweep.flags if flag != "region"]
    exhibits = coverage.make_exhibits(
        sweep.results.runs,
        sweep.results.numbers,
        COVERED,
        by=",".join(flags),
    )
    return Section(
        anchor="coverage",
        title="Coverage",
        introduction="Scores by the share of combinations in training.",
        exhibits=exhibits,
    )


def compare_with_first(runs: Sequence[ScoredRun]) -> Section:
    """Compares OOD errors of the first setting with others, at equal seeds."""
    if len({run.setting for run in runs}) < 2:
        return score_table.make_paired([], "")

    table = pd.DataFrame(
        {
            "setting": [run.setting for run in runs],
            "seed": [run.seed for run in runs],
            "score": score_table.HELD_OUT,
            "value": [run.errors.get("ood") for run in runs],
        }
    )
    names = {"setting_a": "a", "setting_b": "b"}
    pairs = compare_settings(table, ["setting"]).rename(columns=names)
    rows: list[Any] = pairs.to_dict("records")
    finding = score_table.describe_tests(rows, runs[0].setting)
    is_tested = any(row["p_holm"] is not None for row in rows)
    if not is_tested:
        rows = []
    return score_table.make_paired(rows, finding)


def plot(
    sweep: SweepNumbers,
    function: Callable[..., Plot],
    name: str,
    numbers: str | Sequence[str],
    **options: str,
) -> list[Exhibit]:
    """Plots numbers of settings; no figure if no trial has them.

    Args:
        sweep: The statistics of a sweep.
        function: Makes the figure, as `plot_scores`.
        name: The name of the figure.
        numbers: The name of one number, or several names.
        **options: Of the function.
    """
    by = ",".join(sweep.flags)
    runs = sweep.results.runs
    try:
        figure = function(
            runs,
            sweep.results.numbers,
            numbers,
            by=by,
            **options,
        )
    except ConfigError:
        return []
    rows: list[Any] = figure.data.to_dict("records")
    exhibit = Exhibit(
        name=name,
        title=name.replace("_", " ").capitalize(),
        caption="Means over seeds, with 95 % intervals.",
        figure=figure,
        rows=rows,
    )
    return [exhibit]


def write_experiment(
    folder: Path,
    trials: Sequence[Trial],
    tags: Sequence[str],
) -> None:
    """Writes what TensorBoard's HParams shows of a sweep.

    Args:
        folder: The folder of the sweep.
        trials: All of them: their flags are the domains.
        tags: The scores to show, as `ood/mse`.
    """
    domains = []
    for name in [*trials[0].setting, "seed"]:
        values = {{**t.setting, "seed": t.seed}[name] for t in trials}
        domains.append(hparams.HParam(name, hparams.Discrete(values)))
    metrics = [hparams.Metric(tag) for tag in tags]
    # Equal sweeps have equal files, so there is no time in it.
    summary = hparams.hparams_config_pb(domains, metrics, 0.0)

    content = BytesIO()
    writer = RecordWriter(content)
    head = Event(wall_time=0.0, file_version="brain.Event:2")
    event = Event(
        wall_time=0.0,
        step=0,
        summary=summary,
    )
    writer.write(head.SerializeToString())
    writer.write(event.SerializeToString())
    files.write_bytes(folder / EVENTS_FILE, content.getvalue())
