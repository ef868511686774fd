"""A sweep: its trials, the call of each, and its tables and reports.

The files in the folder of a sweep are listed in docs/sweeps.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.summary.writer.record_writer import RecordWriter

from tfcomp.config import run_flags
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.metrics.registry import is_measured
from tfcomp.storage import files
from tfcomp.storage.run_folder import is_finished
from tfcomp.sweeps import grid
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.worker_task import TaskFunction, run_trial
from tfcomp.sweeps.workload import Workload
from tfcomp.tables.flatten import ALL, END, Row

if TYPE_CHECKING:
    from tfcomp.sweeps.sweep_numbers import SweepNumbers

PAGE = "report.html"
TRIALS_TABLE = "trials.csv"
# Settings that a figure can tell apart, with a row of an inch for each five.
MAX_DRAWN = 200
# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"
# TensorBoard shows these first.
FIRST_TAGS = ("ood/relative_mse", "id/relative_mse")


@dataclass(frozen=True)
class Sweep(Workload):
    """The trials of a sweep, in the order of the grid."""

    kind = "sweep"
    noun = "trials"
    flags_name = "sweep.flags"

    items: Sequence[grid.Trial]
    settings: grid.SweepSettings

    def is_finished(self, trial: grid.Trial) -> bool:
        """Checks whether all files of a trial are there and undamaged."""
        if not is_finished(trial.path):
            return False
        return not self.settings.measure or is_measured(trial.path)

    def make_call(
        self, trial: grid.Trial
    ) -> tuple[RunConfig, TaskFunction, list[str]]:
        arguments = run_flags.list_flag_lines(trial.config)
        if self.settings.measure:
            arguments.append("--measure")
        return trial.config, run_trial, arguments

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes `trials.csv`: settings, seeds, scores, reasons of failures."""
        rows = [self._make_row(trial, failures) for trial in self.items]
        files.write_csv(self.folder / TRIALS_TABLE, rows)

    def _make_row(
        self, trial: grid.Trial, failures: Mapping[str, str]
    ) -> dict[str, Any]:
        numbers = grid.read_result(trial)
        status = "missing"
        if trial.name in failures:
            status = "failed"
        elif numbers:
            status = "finished"
        row = {
            "trial": trial.name,
            "status": status,
            "reason": failures.get(trial.name, ""),
            **trial.setting,
            "seed": trial.seed,
        }
        for name, score in grid.list_scores(numbers).items():
            if score == score:  # no NaN
                row[name] = score
        return row

    def read_failures(self, names: Set[str]) -> dict[str, str]:
        """Reads from `trials.csv` why some trials failed."""
        path = self.folder / TRIALS_TABLE
        if not names or not path.exists():
            return {}
        finished = {t.name for t in self.items if grid.read_result(t)}
        failures = {}
        for row in files.read_csv(path):
            name = row["trial"]
            if row["status"] == "failed" and name in names - finished:
                failures[name] = row["reason"]
        return failures

    def write_reports(self) -> None:
        """Writes summary, comparisons, figures and HParams."""
        # A late import: an interrupted command should not wait for it.
        from tfcomp.sweeps.sweep_numbers import compute_numbers

        figures = self.folder / "figures"
        numbers = compute_numbers(self.folder.name, self.items, self.settings)
        # Until they are complete, reports can be wrong.
        files.remove(self.folder / PAGE)
        files.remove(figures)

        tables = {"summary": numbers.scores, "paired": numbers.paired}
        for name, table in tables.items():
            path = self.folder / f"{name}.csv"
            if len(table):
                files.write_table(path, table)
            else:
                path.unlink(missing_ok=True)

        results = [grid.read_result(trial) for trial in self.items]
        write_experiment(self.folder, self.items, list_tags(results))
        settings = {tuple(trial.setting.values()) for trial in self.items}
        if len(settings) > MAX_DRAWN:
            print(f"no figures of more than {MAX_DRAWN} settings")
        elif any(results):
            write_page(self.folder, numbers)


def define_flags() -> flags.FlagValues:
    """Defines the flags of a run, of a sweep, and of its workers."""
    values = run_flags.make_flags(grid.GRID, run_flags.define_run_flags())
    # A hundred trials need no pictures and no SavedModels, which take half of
    # the time of a short run outside training.
    values.set_default("pictures", False)
    values.set_default("export", False)
    run_flags.define_settings(grid.SweepSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_sweep(values: dict[str, Any]) -> Sweep:
    """Makes the sweep that the flags describe; writes nothing.

    Args:
        values: Parsed flags of `define_flags`.

    Raises:
        ConfigError: A combination of the grid breaks a rule.
    """
    settings = grid.SweepSettings.from_flags(values)
    config = make_config(values)
    points = grid.parse_grid(values["grid"], settings.seeds, config.plugins)
    trials, notes = grid.make_trials(values, points, settings.all_seeds)
    for note in notes:
        print(note)

    text = f"# code version: {compute_code_version(config.plugins)}\n"
    text += run_flags.format_flags(config)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    for line in lines + run_flags.list_flag_lines(settings):
        text += f"{line}\n"
    return Sweep(Path(config.run_dir), trials, text, settings)


def write_page(folder: Path, sweep: SweepNumbers) -> None:
    """Writes `figures/`, and the page that shows them.

    Args:
        folder: The folder of the sweep, with `trials/`.
        sweep: Its statistics.
    """
    from tfcomp.figures.exhibits import save_exhibit, use_own_style
    from tfcomp.report.page import render_page
    from tfcomp.sweeps.sweep_page import make_page

    figures = files.make_folder(folder / "figures")
    with use_own_style():
        answer, sections = make_page(sweep, folder)
        exhibits = list(answer.exhibits)
        for section in sections:
            exhibits += section.exhibits
        for exhibit in exhibits:
            save_exhibit(exhibit, figures)
    page = render_page(
        f"Sweep {sweep.title}",
        sweep.common,
        answer,
        sections,
        figures,
        place="figures/",
    )
    files.write_text(folder / PAGE, page)


def list_tags(results: Sequence[Sequence[Row]]) -> list[str]:
    """Lists TensorBoard's names of scores, as `ood/mse`; OOD scores first."""
    tags: dict[str, None] = {}  # in the order of the first result
    for rows in results:
        for when, subset, _, name, _ in rows:
            if when == END and subset != ALL:
                tags[f"{subset}/{name}"] = None

    def rank(tag: str) -> tuple[bool, bool]:
        return tag not in FIRST_TAGS, not tag.startswith("ood")

    return sorted(tags, key=rank)


def write_experiment(
    folder: Path, trials: Sequence[grid.Trial], tags: Sequence[str]
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
    event = Event(wall_time=0.0, step=0, summary=summary)
    writer.write(head.SerializeToString())
    writer.write(event.SerializeToString())
    files.write_bytes(folder / EVENTS_FILE, content.getvalue())
