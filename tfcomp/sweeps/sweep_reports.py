"""Reports on the numbers of a sweep, written after its last trial.

report.html  the results in sentences, and all figures
summary.csv  every setting and score: mean, sd, low, high, n
paired.csv   pairs of settings at equal seeds
figures/     curves and scores (PNG, PDF, CSV)
events...    the tab HParams of TensorBoard: every trial is a session, and
             these events name the settings that vary

They are made again when numbers or code have changed.
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

from tfcomp.storage.code_version import hash_modules
from tfcomp.storage.files import (
    make_subfolder,
    refuse_link,
    write_bytes,
    write_table,
    write_text,
)
from tfcomp.sweeps.grid import SweepSettings, Trial
from tfcomp.sweeps.sweep_progress import say
from tfcomp.sweeps.sweep_tables import Results
from tfcomp.tables.flatten import ALL, END

if TYPE_CHECKING:
    from tfcomp.sweeps.sweep_numbers import SweepNumbers

PAGE, STAMP_FILE = "report.html", ".reports"
# Settings that a figure can tell apart, with a row of an inch for each five.
MAX_DRAWN = 200
PARTS = ("statistics", "tables", "figures", "report", "sweeps")  # that make it
# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"


def write_reports(
    folder: Path,
    trials: Sequence[Trial],
    results: Results,
    settings: SweepSettings,
) -> None:
    """Writes summary, comparisons, figures and HParams, unless up to date."""
    content = [
        [settings.interval, settings.pairs],
        [(trial.name, list(trial.setting)) for trial in trials],
        [results.get(trial.name) for trial in trials],
        hash_modules(f"tfcomp.{part}" for part in PARTS),
    ]
    version = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    stamp = folder / STAMP_FILE
    tables = [folder / f"{name}.csv" for name in ("summary", "paired")]
    if (
        stamp.exists()
        and tables[0].exists()
        and stamp.read_bytes() == version.encode()
    ):
        return
    refuse_link(folder / "figures")
    # Until they are complete, reports can be wrong.
    old = [stamp, folder / PAGE, *(folder / "figures").glob("*.*"), *tables]
    for path in old:
        path.unlink(missing_ok=True)
    # A late import: a command with nothing to report should not wait for it.
    from tfcomp.sweeps.sweep_numbers import compute_numbers

    sweep = compute_numbers(folder.name, trials, settings)
    for path, table in zip(tables, (sweep.scores, sweep.paired), strict=True):
        if len(table):
            write_table(path, table)
    write_experiment(folder, trials, list_tags(results))
    if len({tuple(trial.setting.values()) for trial in trials}) > MAX_DRAWN:
        say(f"no figures: they show {MAX_DRAWN} settings; the tables have all")
    elif results:
        write_page(folder, sweep)
    write_text(stamp, version)


def write_page(folder: Path, sweep: SweepNumbers) -> None:
    """Writes `figures/`, and the page that shows them."""
    from tfcomp.figures.exhibits import save_exhibit
    from tfcomp.report.page import render_page
    from tfcomp.sweeps.sweep_page import make_page

    answer, sections = make_page(sweep, folder)
    figures = make_subfolder(folder, "figures")
    for exhibit in [
        *answer.exhibits,
        *(e for s in sections for e in s.exhibits),
    ]:
        save_exhibit(exhibit, figures)
    title = f"Sweep {sweep.title}"
    page = render_page(
        title, sweep.common, answer, sections, figures, place="figures/"
    )
    write_text(folder / PAGE, page)


def list_tags(results: Results) -> list[str]:
    """Returns TensorBoard's names of scores; it shows the first ones."""
    tags = dict.fromkeys(
        f"{subset}/{name}"
        for rows in results.values()
        for when, subset, _, name, _ in rows
        if when == END and subset != ALL
    )
    first = ("ood/relative_mse", "id/relative_mse")
    return sorted(
        tags, key=lambda tag: (tag not in first, not tag.startswith("ood"))
    )


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
