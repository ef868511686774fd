"""Trains one decoder: `tfcomp train donut`.

    tfcomp train donut --materialize --examples_dir=examples

writes the examples of the run as a TensorFlow dataset and trains nothing;
training with the same `--examples_dir` then reads the same bits.
"""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

import tfcomp
from tfcomp.config.errors import ConfigError
from tfcomp.config.process import exit_on_user_error, start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import (
    TYPED,
    Command,
    define_run_flags,
    make_flags,
    parse_config,
)
from tfcomp.datasets import Dataset, notes
from tfcomp.models.registry import (
    AXES,
    check_parts,
    describe_unused,
    limit_threads,
    make_checked_dataset,
)
from tfcomp.report.verbalize import describe_baselines, describe_scores
from tfcomp.storage.files import (
    check_folder,
    check_run_folders,
    list_versions,
)
from tfcomp.storage.run_folder import (
    FLAGS_FILE,
    find_finished,
    select_scores,
)

if TYPE_CHECKING:
    from tfcomp.report.model_report import ModelReport

FLAGS = {
    "materialize": (False, "Write the examples to --examples_dir, no run."),
}
# The report in a terminal, in characters: a line, the title of a fact, and the
# label of a score.
WIDTH = 80
MARGIN = 14
LABEL = 20
# Scores of the table with their labels and formats.
ROWS = {
    "relative_mse": ("relative MSE", "{:.2g}".format),
    "r2": ("R²", "{:.3g}".format),
    "position_accuracy": ("peaks within 1 px", notes.format_share),
}
# Subsets of the table with their titles.
COLUMNS = {
    "id": "trained",
    "ood": "held out",
    "ood_new": "new images",
    "id_test": "not held out, new",
    "id_plus": "trained, sum",
    "ood_plus": "held out, sum",
}


def train(settings: dict[str, Any]) -> int:
    """Trains and prints the scores, or writes the examples of a run.

    Args:
        settings: The flags of `define_flags`.

    Returns:
        The exit status.

    Raises:
        ConfigError: If settings contradict each other or exceed this machine.
        RunError: If the run folder cannot be used, or training diverges.
    """
    writes_examples = settings.pop("materialize")
    config = make_config(settings)
    if writes_examples:
        return write_examples(config)
    dataset = prepare_dataset(config)
    unused = describe_unused(config, settings[TYPED])
    if unused:
        print(unused)
    try:
        metrics = run_training(config, dataset)
    except KeyboardInterrupt:
        advice = "the same command with --resume goes on"
        if config.overwrite:  # which refuses --resume
            advice = "the same command with --resume for --overwrite goes on"
        raise KeyboardInterrupt(advice) from None
    print(format_report(config, dataset, metrics))
    return 0


def write_examples(config: RunConfig) -> int:
    """Writes the examples of a run to disk unless they are there.

    Args:
        config: The run, with the folder `examples_dir`.

    Returns:
        The exit status.
    """
    check_folder("examples_dir", config.data.examples_dir)
    dataset = make_checked_dataset(config)
    for note in dataset.list_notes():
        print(note)
    with start_tensorflow():
        from tfcomp.datasets.materialized import materialize
    folder = materialize(config, config.data.examples_dir, dataset)
    print(f"examples  {folder}")
    return 0


def describe_run(*flagfiles: str, **settings: Any) -> RunConfig:
    """Makes the configuration of a run from flags of `tfcomp train`.

    Args:
        *flagfiles: As `--flagfile`: paths, or names of shipped ones (`donut`).
        **settings: Flags that override them, as `depth=2`.

    Raises:
        ConfigError: If a value breaks its rule.
        RunError: If a flag or a file does not exist.

    Example:
        >>> config = tfcomp.describe_run("donut", depth=2, run_name="shallow")
        >>> config.model.depth, config.data.region
        (2, 'square:6-22')
    """
    config = parse_config(format_arguments(flagfiles, settings))
    check_parts(config)
    return config


def train_run(
    config: RunConfig | str, *flagfiles: str, **settings: Any
) -> ModelReport:
    """Trains a decoder, or loads the run if it is finished already.

    Args:
        config: The result of `describe_run`, or the name or path of a
            flagfile, as in `tfcomp.train_run("smoke", depth=2)`.
        *flagfiles: More flagfiles; none beside a result of `describe_run`.
        **settings: Flags that override them; none beside such a result.

    Raises:
        ConfigError: If settings contradict each other or exceed this machine.
        RunError: If the run folder cannot be used, or training diverges.
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
    """Turns arguments of Python into the words of a command line.

    Args:
        flagfiles: Paths, or names of shipped ones.
        settings: Values by flag.
    """
    arguments = [f"--flagfile={name}" for name in flagfiles]
    for name, value in settings.items():
        arguments.append(f"--{name}={value}")
    return arguments


def prepare_dataset(config: RunConfig) -> Dataset:
    """Checks that a run can be trained, and prints notes on its data.

    Args:
        config: The run.

    Returns:
        The dataset of the run.

    Raises:
        ConfigError: If settings contradict each other or exceed this machine.
        RunError: If the run folder cannot be used.
    """
    check_run_folders(config.to_flags())
    dataset = make_checked_dataset(config)
    for note in dataset.list_notes():
        print(note)
    return dataset


def run_training(
    config: RunConfig,
    dataset: Dataset | None = None,
) -> dict[str, Any]:
    """Trains a decoder unless it is finished.

    Args:
        config: The run.
        dataset: The result of `prepare_dataset`, if it was called before.

    Returns:
        The content of its `metrics.json`.

    Raises:
        ConfigError: If settings contradict each other or exceed this machine.
        RunError: If the run folder cannot be used, or training diverges.
    """
    dataset = dataset or prepare_dataset(config)
    finished = find_finished(config)
    if finished:
        return finished

    if config.resume and not Path(config.run_dir, FLAGS_FILE).exists():
        note = f"note: nothing to resume at {config.run_dir} (--log_dir and"
        print(f"{note} --run_name), a new run begins", file=sys.stderr)
    limit_threads(config)
    with start_tensorflow():
        from tfcomp.training.experiment import train_and_evaluate

    return train_and_evaluate(config, dataset)


def format_report(
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
) -> str:
    """Formats what `tfcomp train` prints at its end.

    These are a table of scores, facts about data and model with the places of
    files, and a sentence that says what the scores mean.

    Args:
        config: The run.
        dataset: Its data.
        metrics: The content of its `metrics.json`.
    """
    lines = []
    for name, fact in _list_facts(dataset, metrics).items():
        if fact:
            text = textwrap.fill(
                f"{name:{MARGIN}}{fact}",
                width=WIDTH,
                subsequent_indent=" " * MARGIN,
            )
            lines.append(text)
    for name, place in _list_places(config).items():
        lines.append(f"{name:{MARGIN}}{place}")

    scores = _format_scores(metrics)
    facts = "\n".join(lines)
    sentence = textwrap.fill(describe_scores(metrics), WIDTH)
    return f"\n{scores}\n\n{facts}\n\n{sentence}"


def _format_scores(metrics: Mapping[str, Any]) -> str:
    """Formats a table with a row for each score, a column for each subset.

    Scores that no subset has are left out.
    """
    from tfcomp.metrics.registry import USER_METRICS

    subsets = select_scores(metrics)
    rows = dict(ROWS)
    for name, entry in metrics.get(USER_METRICS, {}).items():
        rows[name] = (entry["label"], "{:.3g}".format)

    lines = [" " * LABEL]
    widths = {}
    for subset in subsets:
        title = COLUMNS.get(subset, subset)
        widths[subset] = max(11, len(title) + 2)
        lines[0] += title.rjust(widths[subset])
    for name, (label, format_number) in rows.items():
        values = [scores.get(name) for scores in subsets.values()]
        if all(value is None for value in values):
            continue
        line = label.ljust(LABEL)
        for width, value in zip(widths.values(), values, strict=True):
            text = "-"
            if value is not None:
                text = format_number(value)
            line += text.rjust(width)
        lines.append(line)
    return "\n".join(lines)


def _list_facts(dataset: Dataset, metrics: Mapping[str, Any]) -> dict[str, str]:
    """Returns facts about data and model by title, empty if they do not apply.

    Args:
        dataset: The data of a run.
        metrics: The content of its `metrics.json`.
    """
    identifiable = notes.describe_identifiable(
        dataset.space.names,
        metrics.get("certificate", {}),
        metrics.get("explained", {}),
    )
    return {
        "baselines": describe_baselines(metrics.get("references", {})),
        "identifiable": identifiable,
        "copies": notes.describe_copies(metrics.get("copies", {})),
        "factors": notes.describe_factors(dataset),
        "axes": _describe_axes(metrics.get("embeddings", {})),
        "channels": _describe_channels(metrics.get("channels", {})),
    }


def _list_places(config: RunConfig) -> dict[str, str]:
    """Returns what a run has written, and commands to look at it, by title."""
    run = shlex.quote(config.run_dir)
    logs = shlex.quote(config.log_dir)
    places = {"run": f"{config.run_dir} (all numbers: metrics.json)"}
    if config.export:
        places["saved model"] = config.export_path
        # A run that was finished without `--export` has none.
        if not list_versions(config.export_path):
            export = f"tfcomp export --run={run}"
            places["saved model"] = f"none; write one by {export}"
    places["look"] = f"tfcomp analyze {run}; tensorboard --logdir {logs}"
    return places


def _describe_axes(embeddings: dict[str, dict[str, float | None]]) -> str:
    """Describes axes of hard rendering, as `x: columns (9 times the other)`.

    Args:
        embeddings: Numbers of embeddings by factor; other models have
            no `ratio`, so that the text is empty.
    """
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
    """Describes what factors do, as `shape: size, template; x: x`.

    Args:
        channels: By factor, the spread of each pose term that it moves (see
            `tfcomp.contrib.acting`); empty for other models.
    """
    lines = []
    for factor, terms in channels.items():
        lines.append(f"{factor}: {', '.join(terms) or 'nothing'}")
    return "; ".join(lines)


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
