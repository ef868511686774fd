"""Trains one decoder: `tfcomp train donut`."""

import os
import shlex
import sys
import textwrap
from typing import Any

from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.datasets import notes
from tfcomp.models.registry import AXES, check_config, limit_threads
from tfcomp.report.verbalize import describe_scores, format_references
from tfcomp.storage.output_folders import check_run_folders, list_versions
from tfcomp.storage.run_folder import SAMPLES_FILE, find_finished, select_scores

WIDTH = 80  # characters of a line
MARGIN = 13  # characters before a fact


def train(settings: dict[str, Any]) -> int:
    """Trains and prints the scores."""
    config = make_config(settings)
    print(format_report(config, train_run(config)))
    return 0


def train_run(config: RunConfig) -> dict[str, Any]:
    """Trains a decoder unless it is finished.

    Args:
        config: The run.

    Returns:
        The content of its `metrics.json`.

    Raises:
        ConfigError: Settings contradict each other or exceed this machine.
        RunError: The run folder cannot be used, or training diverges.
    """
    check_run_folders(config.to_flags())
    dataset = check_config(config)
    notes.print_notes(dataset)
    finished = find_finished(config)
    if finished:
        return finished

    if config.resume and not os.path.exists(config.run_dir):
        note = f"note: nothing to resume at {config.run_dir}, a new run begins"
        print(note, file=sys.stderr)
    limit_threads(config)
    with start_tensorflow():
        from tfcomp.training.experiment import train_and_evaluate

    return train_and_evaluate(config, dataset)


def format_report(config: RunConfig, metrics: dict[str, Any]) -> str:
    """Formats the ID and OOD scores, the facts, and one sentence.

    Args:
        config: The run.
        metrics: The content of its `metrics.json`.
    """
    scores = _format_scores(select_scores(metrics))
    scores += format_references(metrics.get("references", {}))
    lines = []
    for name, fact in _list_facts(metrics).items():
        if fact:
            head = f"{name:{MARGIN}}"
            indent = " " * MARGIN
            lines.append(
                textwrap.fill(
                    fact, WIDTH, initial_indent=head, subsequent_indent=indent
                )
            )
    for name, place in _list_places(config).items():
        if place:
            lines.append(f"{name:{MARGIN}}{place}")
    facts = "\n".join(lines)
    sentence = textwrap.fill(describe_scores(metrics), WIDTH)
    return f"\n{scores}\n\n{facts}\n\n{sentence}"


def _list_facts(metrics: dict[str, Any]) -> dict[str, str]:
    """Returns facts about data and model by title; some are empty."""
    reference = metrics.get("reference", "")
    if reference:
        reference = f"{reference} (its relative_mse is 1)"
    coverage = []
    for part, share in metrics.get("coverage", {}).items():
        coverage.append(f"{notes.format_share(share)} of {part}")
    copies = metrics.get("copies", {})
    certified = notes.describe_certificates(metrics.get("certificate", {}))
    if certified:
        certified += f"; {notes.describe_limits(copies)}"

    return {
        "reference": reference,
        "trained on": ", ".join(coverage),
        "copies": notes.describe_copies(copies),
        "determined": certified,
        "images": notes.describe_order(metrics.get("explained", {})),
        "axes": _describe_axes(metrics.get("embeddings", {})),
        "channels": _describe_channels(metrics.get("channels", {})),
    }


def _list_places(config: RunConfig) -> dict[str, str]:
    """Returns what the run has written by title; some are empty."""
    saved = ""
    if config.export:
        saved = config.export_path
        if not list_versions(saved):  # of a run that ended without
            run = shlex.quote(config.run_dir)
            saved = f"none; write one by tfcomp export --run={run}"
    picture = os.path.join(config.run_dir, SAMPLES_FILE)
    return {
        "run": config.run_dir,
        "saved model": saved,
        "samples": picture if os.path.exists(picture) else "",
        "look": f"tensorboard --logdir {shlex.quote(config.log_dir)}",
    }


def _describe_axes(embeddings: dict[str, dict[str, float | None]]) -> str:
    """Describes the axes of hard rendering; empty for other models."""
    axes = []
    for factor, numbers in embeddings.items():
        ratio = numbers.get("ratio")
        if ratio is not None:
            axis = numbers["axis"]
            name = "not decided" if axis is None else AXES[int(axis)]
            axes.append(f"{factor}: {name} ({ratio:.3g} times the other)")
    return ", ".join(axes)


def _describe_channels(channels: dict[str, dict[str, float]]) -> str:
    """Describes what factors do, as `shape: size, template; x: x`."""
    lines = []
    for factor, terms in channels.items():
        lines.append(f"{factor}: {', '.join(terms) or 'nothing'}")
    return "; ".join(lines)


def _format_scores(subsets: dict[str, dict[str, float | None]]) -> str:
    """Formats a table with a row for each score, a column for each subset."""
    head = f"{'':20}"
    for subset in subsets:
        name = "new" if subset == "ood_new" else subset.upper()
        head += f"{name:>12}"

    lines = [head]
    for score in next(iter(subsets.values())):
        line = f"{score:20}"
        for scores in subsets.values():
            value = scores[score]
            line += f"{'-':>12}" if value is None else f"{value:12.4g}"
        lines.append(line)
    return "\n".join(lines)


main = Command(
    purpose=__doc__,
    table=define_run_flags,
    action=train,
    first="tfcomp train smoke",
)

if __name__ == "__main__":
    exit_on_user_error(main)
