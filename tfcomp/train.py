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
from tfcomp.models.config_checks import check_config
from tfcomp.models.registry import AXES, limit_threads
from tfcomp.report.verbalize import describe_scores, format_references
from tfcomp.storage.output_folders import check_run_folders, list_versions
from tfcomp.storage.run_folder import SAMPLES_FILE, find_finished, select_scores

WIDTH, MARGIN = 80, 13  # characters of a line, and before a fact


def train(settings: dict[str, Any]) -> int:
    """Trains and prints the scores."""
    config = make_config(settings)
    print(format_report(config, train_run(config)))
    return 0


def train_run(config: RunConfig) -> dict[str, Any]:
    """Trains a decoder unless it is finished; returns its `metrics.json`."""
    check_run_folders(config.to_flags())
    dataset = check_config(config)
    notes.print_notes(dataset)
    if finished := find_finished(config):
        return finished
    if config.resume and not os.path.exists(config.run_dir):
        note = f"note: nothing to resume at {config.run_dir}, a new run begins"
        print(note, file=sys.stderr)
    limit_threads(config)
    with start_tensorflow():
        from tfcomp.training.experiment import train_and_evaluate

    return train_and_evaluate(config, dataset)


def format_report(config: RunConfig, metrics: dict[str, Any]) -> str:
    """Formats the ID and OOD scores, the facts, and one sentence."""
    facts = _list_facts(config, metrics).items()
    lines = "".join(f"{name:{MARGIN}}{fact}\n" for name, fact in facts if fact)
    sentence = textwrap.fill(describe_scores(metrics), WIDTH)
    scores = _format_scores(select_scores(metrics))
    scores += format_references(metrics.get("references", {}))
    return f"\n{scores}\n\n{lines}\n{sentence}"


def _list_facts(config: RunConfig, metrics: dict[str, Any]) -> dict[str, str]:
    """Returns facts about a run by title; some are empty."""
    coverage, r2 = metrics.get("coverage", {}), metrics.get("r2", {})
    covered = [f"{notes.format_share(v)} of {n}" for n, v in coverage.items()]
    certified = notes.describe_certificates(metrics.get("certificate", {}))
    copies = metrics.get("copies", {})
    certified = certified and f"{certified}; {notes.describe_limits(copies)}"
    # If all or none are determined, one of the two is missing.
    shares = {name: r2.get(name) for name in ("certified", "others")}
    if None in shares.values():
        shares = {}
    picture = os.path.join(config.run_dir, SAMPLES_FILE)
    reference, run = metrics.get("reference", ""), shlex.quote(config.run_dir)
    saved = config.export_path
    if not list_versions(saved):  # of a run that ended without
        saved = f"none; write one by tfcomp export --run={run}"
    return {
        "reference": reference and f"{reference} (its relative_mse is 1)",
        "trained on": ", ".join(covered),
        "copies": _wrap(notes.describe_copies(copies)),
        "determined": _wrap(certified),
        "images": _wrap(notes.describe_order(metrics.get("explained", {}))),
        "R2": ", ".join(
            f"{name} {value:.2f}" for name, value in shares.items()
        ),
        "axes": _describe_axes(metrics.get("embeddings", {})),
        "channels": _wrap(_describe_channels(metrics.get("channels", {}))),
        "run": config.run_dir,
        "saved model": saved if config.export else "",
        "samples": picture if os.path.exists(picture) else "",
        "look": f"tensorboard --logdir {shlex.quote(config.log_dir)}",
    }


def _wrap(text: str) -> str:
    lines = textwrap.fill(text, WIDTH - MARGIN)
    return lines.replace("\n", "\n" + " " * MARGIN)


def _describe_axes(embeddings: dict[str, dict[str, float | None]]) -> str:
    """Describes the axes of hard rendering; empty for other models."""
    lines = []
    for factor, numbers in embeddings.items():
        if (ratio := numbers.get("ratio")) is not None:
            axis = numbers["axis"]
            name = "not decided" if axis is None else AXES[int(axis)]
            lines.append(f"{factor}: {name} ({ratio:.3g} times the other)")
    return ", ".join(lines)


def _describe_channels(channels: dict[str, dict[str, float]]) -> str:
    """Describes what factors do, as `shape: size, template; x: x`."""
    lines = []
    for factor, terms in channels.items():
        lines.append(f"{factor}: {', '.join(terms) or 'nothing'}")
    return "; ".join(lines)


def _format_scores(subsets: dict[str, dict[str, float | None]]) -> str:
    names = ["new" if name == "ood_new" else name.upper() for name in subsets]
    table = f"{'':20}" + "".join(f"{name:>12}" for name in names)
    for score in next(iter(subsets.values())):
        values = (scores[score] for scores in subsets.values())
        cells = (f"{'-':>12}" if v is None else f"{v:12.4g}" for v in values)
        table += f"\n{score:20}{''.join(cells)}"
    return table


main = Command(__doc__, define_run_flags, train, "tfcomp train smoke")

if __name__ == "__main__":
    exit_on_user_error(main)
