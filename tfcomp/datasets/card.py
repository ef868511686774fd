"""The card of a model or a dataset: a page in plain words, `README.md`.

It says what the folder holds, the data and what was held out, scores, how to
load it, and the flags that differ from their defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tfcomp import __version__
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.notes import describe_copies
from tfcomp.storage.run_folder import select_scores

CARD_FILE = "README.md"
READ_EXAMPLES = """\
import tensorflow_datasets as tfds

train = tfds.builder_from_directory(".").as_dataset(split="train")"""


def format_model_card(
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    calls: Sequence[str],
) -> str:
    """Formats the card of a trained model.

    Args:
        config: The settings of its run.
        dataset: The data of its run.
        metrics: The content of its `metrics.json`.
        calls: Python code that draws images of `factors`, one for each format
            in the folder of the card.
    """
    about = (
        f"A decoder (model `{config.model.model}`, code "
        f"`{config.model.encoding}`) that draws an image from the values of "
        f"{len(dataset.space.factors)} factors. It is one network with seed "
        f"{config.training.seed}, made for research on how decoders compose. "
        "Another seed gives other scores. What it draws between or outside of "
        "the values below was not measured."
    )
    defaults = RunConfig().identity()
    flags = {
        name: value
        for name, value in config.identity().items()
        if value != defaults.get(name)
    }
    sections = {
        "Data and split": _describe_data(dataset, config.data.train_all),
        "Scores": _format_scores(dataset, metrics),
        "Use": "\n\n".join(map(_fence, [_make_factors(dataset), *calls])),
        "Flags": _format_flags(flags),
    }
    return _join_page(config.run_name, about, sections)


def format_data_card(dataset: Dataset, flags: Mapping[str, Any]) -> str:
    """Formats the card of examples on disk.

    Args:
        dataset: The data that were written.
        flags: The flags that decide the examples.
    """
    about = (
        "Examples for the training of decoders, written by `tfcomp train "
        "--materialize`, in the format of TensorFlow Datasets. The split "
        "`train` is for training; `ood` has the combinations of factors in the "
        "held-out region. An example has `image` (float32), `is_ood`, and for "
        "each factor `value_<name>` and `label_<name>`, its place on the grid."
    )
    if dataset.draw_all:
        about += " Images in `ood` are means over the images of a combination."
    sections = {
        "Data and split": _describe_data(dataset, bool(flags.get("train_all"))),
        "Use": _fence(READ_EXAMPLES),
        "Flags": _format_flags(flags),
    }
    return _join_page(dataset.name, about, sections)


def describe_factor(factor: Factor) -> str:
    """Describes a factor, as `x: 28 values from 0 to 27 px`."""
    values = factor.values()
    if factor.categorical:
        names = map(factor.describe, values.tolist())
        return f"{factor.name}: {', '.join(names)}"
    first, last = map(factor.describe, values[[0, -1]].tolist())
    ends = f"{first} to {last} {factor.unit}".strip()
    text = f"{factor.name}: {factor.size} values from {ends}"
    if factor.periodic:
        text += f", periodic, {factor.describe_period()}"
    return text


def _describe_data(dataset: Dataset, train_all: bool) -> str:
    shape = " x ".join(map(str, dataset.image_shape))
    region = dataset.region.spec
    is_ood = dataset.splits.all.is_ood
    num_ood = int(is_ood.sum())

    if not num_ood:
        split = "Nothing was held out from training."
    elif train_all:
        split = f"As a control, training included the region `{region}` (OOD)."
    else:
        split = f"The region `{region}` was held out from training (OOD)."

    lines = [
        f"Dataset `{dataset.name}`: images of {shape} (rows, columns, "
        f"channels). {split} {len(is_ood) - num_ood:,} combinations of factors "
        f"are in distribution (ID), {num_ood:,} are out of distribution (OOD). "
        f"Training had {len(dataset.splits.train):,} examples. Factors:",
        "",
    ]
    lines += [f"- {describe_factor(factor)}" for factor in dataset.space]

    notes = []
    if dataset.about:
        notes.append(f"Images: {dataset.about}.")
    if dataset.license:
        notes.append(f"License of the images: {dataset.license}.")
    if notes:
        lines += ["", " ".join(notes)]
    return "\n".join(lines)


def _format_scores(dataset: Dataset, metrics: Mapping[str, Any]) -> str:
    scores = select_scores(metrics)
    names = dict.fromkeys(name for values in scores.values() for name in values)
    lines = [
        f"| score | {' | '.join(scores)} |",
        f"|---|{'---|' * len(scores)}",
    ]
    for name in names:
        cells = [_format_number(values.get(name)) for values in scores.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")

    reference = dataset.reference_name
    lines += ["", f"A `relative_mse` of 1 is no better than {reference}."]
    r2 = metrics.get("r2", {})
    if r2.get("ood") is not None:
        text = _format_number(r2["ood"])
        lines.append(f"R² of OOD images about their mean is {text}.")
    if len(dataset.splits.scored) < len(dataset.splits.all):
        count = len(dataset.splits.scored)
        lines.append(f"Scores are of a sample of {count:,} combinations.")
    if copies := describe_copies(metrics.get("copies", {})):
        lines.append(f"Copies: {copies}.")
    return "\n".join(lines)


def _format_number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "–"


def _make_factors(dataset: Dataset) -> str:
    """Returns code that makes `factors` [1, F] of the first values."""
    values = [float(f"{factor.low:g}") for factor in dataset.space]
    names = ", ".join(dataset.space.names)
    return (
        "import numpy as np\n\n"
        f'factors = np.array([{values}], "float32")  # {names}; any number of '
        "rows"
    )


def _format_flags(flags: Mapping[str, Any]) -> str:
    lines = [f"--{name}={value}" for name, value in flags.items()]
    note = "All other flags have their defaults."
    return "\n\n".join([_fence("\n".join(lines), language=""), note])


def _fence(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"


def _join_page(title: str, about: str, sections: Mapping[str, str]) -> str:
    parts = [f"# {title}", f"{about} Made by tfcomp {__version__}."]
    for name, text in sections.items():
        parts += [f"## {name}", text]
    return "\n\n".join(parts) + "\n"
