"""Trains one decoder: `tfcomp train donut`.

    tfcomp train donut --materialize --examples_dir=examples

writes the examples of the run as a TensorFlow dataset and trains nothing;
training with the same `--examples_dir` then reads the same bits.
"""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

import tfcomp
from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.config.errors import ConfigError
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import define_run_flags, make_flags, parse_config
from tfcomp.datasets import notes
from tfcomp.models.registry import AXES, check_config, limit_threads
from tfcomp.report.verbalize import describe_scores, format_references
from tfcomp.storage.files import (
    check_folder,
    check_run_folders,
    list_versions,
)
from tfcomp.storage.run_folder import SAMPLES_FILE, find_finished, select_scores

if TYPE_CHECKING:
    from tfcomp.report.model_report import ModelReport

FLAGS = {
    "materialize": (False, "Write the examples to --examples_dir, no run."),
}
WIDTH = 80  # characters of a line
MARGIN = 13  # characters before a fact


def train(settings: dict[str, Any]) -> int:
    """Trains and prints the scores, or writes the examples of a run.

    Raises:
        ConfigError: Settings contradict each other or exceed this machine.
        RunError: The run folder cannot be used, or training diverges.
    """
    writes_examples = settings.pop("materialize")
    config = make_config(settings)
    if writes_examples:
        return write_examples(config)
    print(format_report(config, run_training(config)))
    return 0


def write_examples(config: RunConfig) -> int:
    """Writes the examples of a run to disk unless they are there."""
    check_folder("examples_dir", config.data.examples_dir)
    dataset = check_config(config)
    notes.print_notes(dataset)
    with start_tensorflow():
        from tfcomp.datasets.materialized import materialize
    folder = materialize(config, config.data.examples_dir, dataset)
    print(f"examples  {folder}")
    return 0


def describe_run(*flagfiles: str, **settings: Any) -> RunConfig:
    """Describes a run by flags of `tfcomp train`.

    Args:
        *flagfiles: As `--flagfile`: paths, or names of shipped ones (`donut`).
        **settings: Flags that override them, as `depth=2`.

    Raises:
        ConfigError: A value breaks its rule.
        RunError: A flag or a file does not exist.

    Example:
        >>> config = tfcomp.describe_run("donut", depth=2, run_name="shallow")
        >>> config.model.depth, config.data.region
        (2, 'square:6-22')
    """
    return parse_config(format_arguments(flagfiles, settings))


def train_run(
    config: RunConfig | str, *flagfiles: str, **settings: Any
) -> ModelReport:
    """Trains a decoder, or loads the run if it is finished already.

    Args:
        config: The result of `describe_run`, or the name or path of a
            flagfile, as in `tfcomp.train_run("smoke", depth=2)`.
        **settings: Flags that override them.

    Raises:
        ConfigError: Settings contradict each other or exceed this machine.
        RunError: The run folder cannot be used, or training diverges.
    """
    if not isinstance(config, RunConfig):
        config = describe_run(config, *flagfiles, **settings)
    elif flagfiles or settings:
        rule = "must be given to describe_run"
        raise ConfigError("settings", rule, [*flagfiles, *settings])
    run_training(config)
    return tfcomp.load_run(config.run_dir)


def format_arguments(
    flagfiles: Sequence[str], settings: Mapping[str, Any]
) -> list[str]:
    """Returns the words of a command line, from arguments of Python.

    Args:
        flagfiles: Paths, or names of shipped ones.
        settings: Values by flag.
    """
    arguments = [f"--flagfile={name}" for name in flagfiles]
    for name, value in settings.items():
        arguments.append(f"--{name}={value}")
    return arguments


def run_training(config: RunConfig) -> dict[str, Any]:
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
            text = textwrap.fill(
                head + fact,
                WIDTH,
                subsequent_indent=indent,
            )
            lines.append(text)
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
    samples = os.path.join(config.run_dir, SAMPLES_FILE)
    if not os.path.exists(samples):
        samples = ""
    return {
        "run": config.run_dir,
        "saved model": saved,
        "samples": samples,
        "look": f"tensorboard --logdir {shlex.quote(config.log_dir)}",
    }


def _describe_axes(embeddings: dict[str, dict[str, float | None]]) -> str:
    """Describes the axes of hard rendering; empty for other models."""
    axes = []
    for factor, numbers in embeddings.items():
        if numbers.get("ratio") is None:
            continue
        name = "not decided"
        axis = numbers["axis"]
        if axis is not None:
            name = AXES[int(axis)]
        ratio = f"{numbers['ratio']:.3g} times the other"
        axes.append(f"{factor}: {name} ({ratio})")
    return ", ".join(axes)


def _describe_channels(channels: dict[str, dict[str, float]]) -> str:
    """Describes what factors do, as `shape: size, template; x: x`."""
    lines = []
    for factor, terms in channels.items():
        lines.append(f"{factor}: {', '.join(terms) or 'nothing'}")
    return "; ".join(lines)


def _format_scores(subsets: dict[str, dict[str, float | None]]) -> str:
    """Formats a table with a row for each score, a column for each subset."""
    import pandas as pd

    table = pd.DataFrame(subsets, dtype=float)
    names = {subset: subset.upper() for subset in subsets}
    names["ood_new"] = "new"
    return table.rename(columns=names).to_string(
        na_rep="-", float_format="{:.4g}".format, col_space=12
    )


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, and of this command."""
    return make_flags(FLAGS, define_run_flags())


main = Command(
    purpose=__doc__,
    table=define_flags,
    action=train,
    first="tfcomp train smoke",
)

if __name__ == "__main__":
    exit_on_user_error(main)
