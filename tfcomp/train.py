"""Trains one decoder: `tfcomp train donut`."""

import os
import textwrap
from typing import Any

from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.machine import limit_threads
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.datasets.solvable import describe_certificates
from tfcomp.evaluation.in_words import describe_scores
from tfcomp.models.acting_rules import describe_channels
from tfcomp.models.config_checks import check_config
from tfcomp.models.model_rules import AXES
from tfcomp.storage.output_folders import check_run_folders
from tfcomp.storage.run_folder import SAMPLES_FILE, find_finished, select_scores

WIDTH = 80  # characters of a line of prose


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    values = define_run_flags()
    return run_command(argv, __doc__, values, train, "tfcomp train smoke")


def train(settings: dict[str, Any]) -> int:
    """Trains and prints the scores."""
    config = make_config(settings)
    print(format_report(config, train_run(config)))
    return 0


def train_run(config: RunConfig) -> dict[str, Any]:
    """Trains a decoder, scores it, and writes its folders.

    TensorFlow is imported only after everything that can be checked without
    it has been checked.

    Returns:
        The content of `metrics.json`; of a finished run without training it
        again, and without TensorFlow.

    Raises:
        ConfigError: If settings do not fit together, or to this machine.
        RunError: If the run folder cannot be used, or training diverges.
    """
    check_config(config)
    check_run_folders(config.to_flags())
    if finished := find_finished(config):
        return finished
    limit_threads(config)
    with start_tensorflow():
        from tfcomp.training.experiment import train_and_evaluate

    return train_and_evaluate(config)


def format_report(config: RunConfig, metrics: dict[str, Any]) -> str:
    """The ID and OOD scores, where to look, and what they say."""
    scores = select_scores(metrics)
    subsets = {name.upper(): found for name, found in scores.items()}
    exported = f"saved model  {config.export_path}\n" if config.export else ""
    axes = format_axes(metrics.get("embeddings", {}))
    picture = os.path.join(config.run_dir, SAMPLES_FILE)
    samples = f"samples      {picture}\n" if os.path.exists(picture) else ""
    said = textwrap.fill(describe_scores(metrics), WIDTH)
    return (
        f"\n{format_scores(subsets)}\n\n"
        f"{format_coverage(metrics.get('coverage', {}))}"
        f"{format_certificate(metrics.get('certificate', {}))}"
        f"{format_r2(metrics.get('r2', {}))}"
        f"{axes}"
        f"{format_channels(metrics.get('channels', {}))}"
        f"run          {config.run_dir}\n"
        f"{exported}"
        f"{samples}"
        f"look         tensorboard --logdir {config.log_dir}\n\n"
        f"{said}"
    )


def format_coverage(coverage: dict[str, float]) -> str:
    """A line on what training covered; empty for a run of earlier times."""
    parts = [f"{share:.1%} of {name}" for name, share in coverage.items()]
    return f"trained on   {', '.join(parts)}\n" if parts else ""


def format_certificate(orders: dict[str, dict[str, float | None]]) -> str:
    """A line on what training determines; empty for a run of earlier times."""
    found = describe_certificates(orders)
    return f"certified    {found}\n" if found else ""


def format_r2(r2: dict[str, float | None]) -> str:
    """A line on held-out R^2; empty if all or none of them are certified."""
    names = "certified", "others"
    found = [f"{name} {r2[name]:.2f}" for name in names if r2.get(name)]
    return f"R2           {', '.join(found)}\n" if len(found) == 2 else ""


def format_axes(embeddings: dict[str, dict[str, float | None]]) -> str:
    """A line on the axes that hard rendering found; empty for other models."""
    found = []
    for factor, numbers in embeddings.items():
        if (ratio := numbers.get("ratio")) is not None:
            axis = numbers["axis"]
            name = "not decided" if axis is None else AXES[axis]
            found.append(f"{factor}: {name} ({ratio:.3g} times the other)")
    return f"axes         {', '.join(found)}\n" if found else ""


def format_channels(channels: dict[str, dict[str, float]]) -> str:
    """Lines on what factors do in the acting decoder; else empty."""
    said = f"channels     {describe_channels(channels)}"
    lines = textwrap.wrap(said, WIDTH, subsequent_indent=" " * 13)
    return "".join(f"{line}\n" for line in lines) if channels else ""


def format_scores(subsets: dict[str, dict[str, float | None]]) -> str:
    """A table with a column for each set of scores."""
    rows = [f"{'':20}" + "".join(f"{name:>12}" for name in subsets)]
    for score in next(iter(subsets.values())):
        cells = (_format(scores[score]) for scores in subsets.values())
        rows.append(f"{score:20}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(rows)


def _format(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    exit_on_user_error(main)
