"""A sweep: its trials, the call of each, and its tables and reports.

The files in the folder of a sweep are listed in docs/sweeps.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.summary.writer.record_writer import RecordWriter

from tfcomp.config import run_flags
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.metrics.registry import is_measured
from tfcomp.storage import files
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.run_folder import is_finished
from tfcomp.sweeps import grid
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import TaskFunction, run_trial
from tfcomp.sweeps.workload import Workload
from tfcomp.tables.flatten import ALL, END, Row

if TYPE_CHECKING:
    from tfcomp.sweeps.sweep_numbers import SweepNumbers

PAGE = "report.html"
# Settings that a figure can tell apart, with a row of an inch for each five.
MAX_DRAWN = 200
# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"


@dataclass(frozen=True)
class Sweep(Workload):
    """The trials of a sweep, in the order of the grid."""

    kind = "sweep"
    noun = "trials"
    flags_name = "sweep.flags"

    items: Sequence[grid.Trial]
    settings: grid.SweepSettings

    def is_finished(self, trial: grid.Trial) -> bool:
        """Returns True if all files of a trial are there and undamaged."""
        if not is_finished(trial.path):
            return False
        return not self.settings.measure or is_measured(trial.path)

    def make_call(
        self, trial: grid.Trial
    ) -> tuple[RunConfig, TaskFunction, list[str]]:
        measure = ["--measure"] if self.settings.measure else []
        lines = run_flags.list_flag_lines(trial.config)
        return trial.config, run_trial, lines + measure

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes `trials.csv`: settings, seeds, scores, reasons of failures."""
        rows: list[dict[str, Any]] = []
        for trial in self.items:
            result = grid.read_result(trial)
            status = "finished" if result else "missing"
            row = {
                "trial": trial.name,
                "status": "failed" if trial.name in failures else status,
                "reason": failures.get(trial.name, ""),
                **trial.setting,
                "seed": trial.seed,
            }
            scores = grid.list_scores(result).items()
            rows.append(row | {n: x for n, x in scores if x == x})  # no NaN
        files.write_csv(self.folder / "trials.csv", rows)

    def write_reports(self) -> None:
        """Writes summary, comparisons, figures and HParams."""
        # A late import: an interrupted command should not wait for it.
        from tfcomp.sweeps.sweep_numbers import compute_numbers

        folder, trials = self.folder, self.items
        files.refuse_link(folder / "figures")
        # Until they are complete, reports can be wrong.
        tables = [folder / f"{name}.csv" for name in ("summary", "paired")]
        old = [folder / PAGE, *(folder / "figures").glob("*.*"), *tables]
        for path in old:
            path.unlink(missing_ok=True)
        sweep = compute_numbers(folder.name, trials, self.settings)
        found = (sweep.scores, sweep.paired)
        for path, table in zip(tables, found, strict=True):
            if len(table):
                files.write_table(path, table)
        results = [grid.read_result(trial) for trial in trials]
        write_experiment(folder, trials, list_tags(results))
        if len({tuple(trial.setting.values()) for trial in trials}) > MAX_DRAWN:
            print(f"no figures of more than {MAX_DRAWN} settings")
        elif any(results):
            write_page(folder, sweep)


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, of a sweep, and of its workers."""
    values = run_flags.make_flags(grid.GRID, run_flags.define_run_flags())
    # A hundred trials need no pictures and no SavedModels, which take half of
    # the time of a short run outside training.
    values.set_default("pictures", False)
    values.set_default("export", False)
    run_flags.define_settings(grid.SweepSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_sweep(values: dict[str, Any]) -> Sweep:
    """Returns the sweep that the flags describe; writes nothing."""
    settings = grid.SweepSettings.from_flags(values)
    config = make_config(values)
    points = grid.parse_grid(values["grid"], settings.seeds, config.plugins)
    trials, notes = grid.make_trials(values, points, settings.all_seeds)
    for note in notes:
        print(note)
    version = compute_code_version(config.plugins)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines += run_flags.list_flag_lines(settings)
    text = f"# code version: {version}\n{run_flags.format_flags(config)}"
    text += "".join(f"{line}\n" for line in lines)
    return Sweep(Path(config.run_dir), trials, text, settings)


def write_page(folder: Path, sweep: SweepNumbers) -> None:
    """Writes `figures/`, and the page that shows them."""
    from tfcomp.figures.exhibits import save_exhibit, use_own_style
    from tfcomp.report.page import render_page
    from tfcomp.sweeps.sweep_page import make_page

    figures = files.make_subfolder(folder, "figures")
    with use_own_style():
        answer, sections = make_page(sweep, folder)
        exhibits = [*answer.exhibits]
        for section in sections:
            exhibits += section.exhibits
        for exhibit in exhibits:
            save_exhibit(exhibit, figures)
    shown = f"Sweep {sweep.title}", sweep.common, answer, sections, figures
    files.write_text(folder / PAGE, render_page(*shown, place="figures/"))


def list_tags(results: Iterable[Sequence[Row]]) -> list[str]:
    """Returns TensorBoard's names of scores; it shows the first ones."""
    tags = dict.fromkeys(
        f"{subset}/{name}"
        for rows in results
        for when, subset, _, name, _ in rows
        if when == END and subset != ALL
    )
    first = ("ood/relative_mse", "id/relative_mse")
    return sorted(tags, key=lambda t: (t not in first, not t.startswith("ood")))


def write_experiment(
    folder: Path, trials: Sequence[grid.Trial], tags: Collection[str]
) -> None:
    """Writes the domains of varied flags, and tags of scores, as `ood/mse`."""
    settings = [{**trial.setting, "seed": trial.seed} for trial in trials]
    values = {name: {s[name] for s in settings} for name in settings[0]}
    domains = [
        hparams.HParam(name, hparams.Discrete(varied))
        for name, varied in values.items()
    ]
    # Equal sweeps have equal files, so there is no time in it.
    metrics = map(hparams.Metric, tags)
    summary = hparams.hparams_config_pb(domains, metrics, 0.0)
    content = BytesIO()
    writer = RecordWriter(content)
    head = Event(wall_time=0.0, file_version="brain.Event:2")
    for event in (head, Event(wall_time=0.0, step=0, summary=summary)):
        writer.write(event.SerializeToString())
    files.write_bytes(folder / EVENTS_FILE, content.getvalue())
