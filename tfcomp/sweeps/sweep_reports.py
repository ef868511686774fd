"""What is made of the numbers of a sweep once its trials have ended.

report.html  what they say, and all figures
summary.csv  every setting and score: mean, sd, low, high, n
paired.csv   pairs of settings at equal seeds
figures/     curves and scores (PNG, PDF, CSV)
events...    the tab HParams of TensorBoard: every trial is a session, and what
             is written here tells which of its settings vary

It is made again only when its numbers, its code or its files have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.summary.writer.record_writer import RecordWriter

from tfcomp.statistics.setting_table import choose_flags
from tfcomp.storage import code_version
from tfcomp.storage.files import (
    make_subfolder,
    refuse_link,
    write_bytes,
    write_text,
)
from tfcomp.storage.run_folder import select_scores
from tfcomp.sweeps import sweep_tables
from tfcomp.sweeps.grid import SweepSettings, Trial
from tfcomp.sweeps.sweep_progress import say

if TYPE_CHECKING:
    import pandas as pd

    from tfcomp.figures.exhibits import Exhibit
    from tfcomp.sweeps.sweep_exhibits import SweepScores

PAGE = "report.html"
# Settings that a figure can tell apart, with a row of an inch for each five.
MAX_DRAWN = 200
PARTS = ("statistics", "figures", "report", "sweeps")  # that make it
# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"


def write_reports(
    folder: Path,
    trials: Sequence[Trial],
    results: sweep_tables.Results,
    settings: SweepSettings,
) -> None:
    """Writes summary, comparisons, figures and HParams, unless up to date."""
    method, pairs = settings.interval, settings.pairs
    content = [
        [method, pairs],
        [(trial.name, list(trial.setting)) for trial in trials],
        [results.get(trial.name) for trial in trials],
        code_version.hash_modules(f"tfcomp.{part}" for part in PARTS),
    ]
    version = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    if code_version.is_current(folder, version):
        return
    # Late imports, here and below: who has nothing new to report should not
    # wait for them.
    from tfcomp.evaluation.metrics import find_limits
    from tfcomp.statistics.seed_statistics import summarize
    from tfcomp.statistics.seed_tests import compare_settings
    from tfcomp.sweeps import sweep_exhibits

    refuse_link(folder / "figures")
    # What is made can be wrong until it is complete.
    (folder / code_version.STAMP_FILE).unlink(missing_ok=True)
    scores = sweep_tables.tabulate_scores(trials, results)
    flags = list(trials[0].setting)
    summary = summarize(scores, [*flags, "score"], find_limits, method)
    sweep_tables.update_table(folder / "summary.csv", summary)
    paired = compare_settings(scores, flags, method, pairs)
    sweep_tables.update_table(folder / "paired.csv", paired)
    write_experiment(folder, trials, list_tags(results))
    finished = [trial for trial in trials if trial.name in results]
    for path in [folder / PAGE, *(folder / "figures").glob("*.*")]:
        path.unlink(missing_ok=True)  # of an earlier grid
    if len({tuple(trial.setting.values()) for trial in trials}) > MAX_DRAWN:
        say(f"no figures: they show {MAX_DRAWN} settings; the tables have all")
    elif finished:
        shown = choose_flags([trial.setting for trial in finished])
        sweep = sweep_exhibits.SweepScores(
            folder.name, shown, scores, summary, method
        )
        layers = sweep_tables.tabulate_layers(trials, results)
        exhibits = sweep_exhibits.make_exhibits(
            sweep,
            sweep_exhibits.summarize_curves(finished),
            sweep_exhibits.summarize_layers(layers, flags),
        )
        write_page(folder, sweep, exhibits, paired, len(trials))
    names = ("summary.csv", "paired.csv", EVENTS_FILE, PAGE)
    made = [folder / name for name in names]
    made += sorted((folder / "figures").glob("*.*"))
    code_version.write_stamp(folder, version, made)


def list_tags(results: sweep_tables.Results) -> list[str]:
    """TensorBoard's names of the scores, the first of which it shows."""
    tags = dict.fromkeys(
        f"{subset}/{name}"
        for result in results.values()
        for subset, scores in select_scores(result).items()
        for name in scores
    )
    first = ("ood/relative_mse", "id/relative_mse")
    return sorted(
        tags, key=lambda tag: (tag not in first, not tag.startswith("ood"))
    )


def write_page(
    folder: Path,
    sweep: SweepScores,
    exhibits: Sequence[Exhibit],
    paired: pd.DataFrame,
    planned: int,
) -> None:
    """Writes `figures/`, and the page that shows them."""
    from tfcomp.figures.exhibits import save_exhibit
    from tfcomp.report.page import render_page
    from tfcomp.sweeps.sweep_page import make_answer, make_sections

    answer = make_answer(sweep, exhibits, planned)
    sections = make_sections(sweep, exhibits, paired)
    figures = make_subfolder(folder, "figures")
    for part in (answer, *sections):
        for exhibit in part.exhibits:
            save_exhibit(exhibit, figures)
    title, text = f"Sweep {sweep.title}", "Made by tfcomp from finished trials."
    page = render_page(title, text, answer, sections, figures, place="figures/")
    write_text(folder / PAGE, page)


def write_experiment(
    folder: Path, trials: Sequence[Trial], tags: Collection[str]
) -> None:
    """Writes the domains of varied flags, and tags of scores, as `ood/mse`."""
    settings = [{**trial.setting, "seed": trial.seed} for trial in trials]
    domains = [
        hparams.HParam(
            name, hparams.Discrete({setting[name] for setting in settings})
        )
        for name in settings[0]
    ]
    # Equal sweeps have equal files, so there is no time in it.
    metrics = map(hparams.Metric, tags)
    summary = hparams.hparams_config_pb(domains, metrics, 0.0)
    content = BytesIO()
    writer = RecordWriter(content)
    head = Event(wall_time=0.0, file_version="brain.Event:2")
    for event in (head, Event(wall_time=0.0, step=0, summary=summary)):
        writer.write(event.SerializeToString())
    write_bytes(folder / EVENTS_FILE, content.getvalue())
