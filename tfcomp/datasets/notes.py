"""Facts of a dataset in words: notes of a run, and the card of a model.

The card, `README.md`, says what the folder of a model holds, the data and what
was held out, scores, how to load it, and the flags that differ from their
defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfcomp import __version__
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor
from tfcomp.statistics.seed_statistics import format_rows
from tfcomp.storage.run_folder import select_scores

CARD_FILE = "README.md"
MAX_SHOWN = 4  # groups of values of a factor
MAX_NAMES = 12  # names of levels
MAX_ROWS = 20  # of a table of factors
Numbers = Mapping[str, float | None]
SUM = 0.99  # R^2 from which training images count as sums


def describe_split(dataset: Dataset) -> list[str]:
    """Says what is held out: notes, combinations, values; a line each.

    Args:
        dataset: The data of a model or of embeddings from elsewhere.
    """
    lines = dataset.list_notes()
    is_ood = dataset.splits.all.is_ood
    if is_ood.any():
        lines += [
            f"held out: {is_ood.sum():,} of {len(is_ood):,} combinations",
            f"factors: {describe_factors(dataset)}",
        ]
    return lines


def name_hidden(dataset: Dataset) -> str:
    """Names held-out values that training lacks, as `shape cube; x 3, 4`."""
    hidden = dataset.splits.hidden
    return "; ".join(f"{name} {_list_groups(hidden[name])}" for name in hidden)


def list_factors(dataset: Dataset) -> list[dict[str, str]]:
    """Lists the factors of a dataset, a row each.

    Returns:
        Of each factor `factor` (its name), `kind`, `values`, `period` (which
        value equals the first one; empty without a period) and `unit`.
    """
    rows = []
    for factor in dataset.space:
        kind = _find_kind(factor)
        period = ""
        if factor.periodic:
            period = factor.describe_period()
        rows.append(
            {
                "factor": factor.name,
                "kind": kind,
                "values": _describe_values(factor, kind),
                "period": period,
                "unit": factor.unit,
            }
        )
    return rows


def _find_kind(factor: Factor) -> str:
    """Finds the kind of a factor, as `--factors=NAME:KIND` takes it."""
    if factor.categorical:
        return "categorical"
    if factor.periodic:
        return "periodic"
    if factor.continuous:
        return "continuous"
    return "ordered"


def _describe_values(factor: Factor, kind: str) -> str:
    """Describes values without their unit, as `28 values from 0 to 27`."""
    values = factor.values().tolist()
    if kind == "categorical":
        names = [factor.describe(value) for value in values]
        return _list_groups(names, MAX_NAMES)

    first = factor.describe(values[0])
    last = factor.describe(values[-1])
    if kind == "continuous":
        return f"{first} to {last} in {factor.size} bins"
    return f"{factor.size} values from {first} to {last}"


def format_factors(dataset: Dataset) -> str:
    """Formats the table of `list_factors`; of many factors, the ends."""
    import pandas as pd  # here: training needs none

    table = pd.DataFrame(list_factors(dataset))
    is_filled = table.astype(bool).any()
    filled = table.loc[:, is_filled]
    return filled.to_string(index=False, max_rows=MAX_ROWS)


def describe_factors(dataset: Dataset) -> str:
    """Describes values and held-out values; equal factors share a part.

    For example `x, y: 28 values from 0 to 27 px, 17 held out in part`.
    """
    held_out = count_held_out(dataset)
    groups: dict[str, list[str]] = {}
    for row in list_factors(dataset):
        text = _describe_row(row)
        factor = row["factor"]
        in_part, altogether = held_out.get(factor, (0, 0))
        if in_part:
            text += f", {in_part} held out in part"
        if altogether:
            text += f", {altogether} held out altogether"
        groups.setdefault(text, []).append(factor)

    parts = [
        f"{_list_groups(names, MAX_NAMES)}: {text}"
        for text, names in groups.items()
    ]
    return "; ".join(parts)


def _describe_row(row: Mapping[str, str]) -> str:
    """Joins a row of `list_factors`, as `4 values from 0 to 270, periodic`."""
    text = f"{row['values']} {row['unit']}".rstrip()
    if row["kind"] in ("periodic", "continuous"):
        text += f", {row['kind']}"
    if row["period"]:
        text += f", {row['period']}"
    return text


def count_held_out(dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Counts held-out values of the factors that the region limits.

    Returns:
        By factor the number of values that training has in other
        combinations, and of those that it lacks.
    """
    points = dataset.splits.all
    if not points.is_ood.any():
        return {}

    index = dataset.space.to_index(points.factors)
    counts = {}
    for factor, column in zip(dataset.space, index.T, strict=True):
        held_out = np.unique(column[points.is_ood])
        trained = column[~points.is_ood]
        num_part = len(np.intersect1d(held_out, trained))
        num_unseen = len(held_out) - num_part
        if num_part < factor.size:
            counts[factor.name] = (num_part, num_unseen)
    return counts


def describe_copies(summary: Mapping[str, Any]) -> str:
    """Describes `Copies.summary`; empty without equal images."""
    parts = []
    held_out = summary.get("num_held_out")
    if held_out:
        copies = summary["num_copies"]
        text = (
            f"{copies:,} of {held_out:,} held-out images are equal to a "
            "training image"
        )
        if copies == held_out:
            text += " (nothing new is held out)"
        parts.append(text)

    aliases = summary.get("aliases", {})
    for name, groups in aliases.items():
        parts.append(f"{name}: {_list_groups(groups)} in training images")
    return "; ".join(parts)


def _list_groups(groups: list[str], most: int = MAX_SHOWN) -> str:
    """Lists the first names or groups of values."""
    listed = groups[:most]
    more = len(groups) - most
    if more > 0:
        listed = [*listed, f"{more:,} more"]
    return ", ".join(listed)


def format_share(share: float) -> str:
    """Formats a share: only all of it is 100.0%, and only nothing is 0.0%."""
    text = f"{share:.1%}"
    if text == "100.0%" and share < 1:
        return "over 99.9%"
    if text == "0.0%" and share > 0:
        return "under 0.1%"
    return text


def describe_identifiable(
    names: Sequence[str],
    certificate: Mapping[str, Numbers],
    explained: Mapping[str, float],
) -> str:
    """Says whether held-out combinations follow from the training set.

    Args:
        names: The factors.
        certificate: By order the share that is certified, as in
            `metrics.json`.
        explained: By order R² of training images as sums of effects.

    Returns:
        An answer, and whether images add up; empty if nothing is held out.
    """
    orders = []
    for order, numbers in certificate.items():
        if numbers["certified"] == 1:
            orders.append(int(order))
    share = certificate.get("1", {}).get("certified")
    if share is None:
        return ""

    factors = "factors"
    if len(names) == 2:
        factors = " and ".join(names)
    answer = f"{format_share(share)} of combinations"
    if max(orders, default=0) > 1:
        answer = f"yes, if at most {max(orders)} factors interact"
    elif share == 1:
        answer = f"yes, if {factors} act separately"
    elif share == 0:
        answer = f"no, not even if {factors} act separately"
    else:
        answer += f", if {factors} act separately"
    if "1" not in explained:
        return answer

    r2 = explained["1"]
    verdict = "interact"
    if r2 >= SUM:
        verdict = "add up"
    return f"{answer}; these images {verdict} (additive R² {r2:.2g})"


def describe_noise(numbers: Numbers) -> str:
    """Formats the variance of determined sums; empty if it is unknown."""
    mean = numbers.get("noise_mean")
    largest = numbers.get("noise_max")
    if mean is None or largest is None:
        return ""
    text = f"variance {mean:.2g} times an image's"
    if f"{mean:.2g}" == f"{largest:.2g}":
        return text
    return f"{text}, at most {largest:.2g}"


def format_model_card(
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    calls: Sequence[str],
    methods: str = "",
) -> str:
    """Formats the card of a trained model.

    Args:
        config: The settings of its run.
        dataset: The data of its run.
        metrics: The content of its `metrics.json`.
        calls: Python code that draws images of `factors`, one for each format
            in the folder of the card.
        methods: A paragraph on the network and its training.
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
    code = [_make_factors(dataset), *calls]
    sections = {
        "Data and split": _describe_data(dataset, config.data.train_all),
        "Methods": methods,
        "Scores": _format_scores(dataset, metrics),
        "Use": "\n\n".join(map(_fence, code)),
        "Flags": _format_flags(flags),
    }
    parts = [
        f"# {config.run_name}",
        f"{about} Made by tfcomp {__version__}.",
    ]
    for name, text in sections.items():
        if text:
            parts += [f"## {name}", text]
    return "\n\n".join(parts) + "\n"


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
    rows = list_factors(dataset)
    table = [list(rows[0])]
    table += [list(row.values()) for row in rows]
    lines.append(format_rows(table).rstrip())

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
    subsets = list(scores.values())
    names: dict[str, None] = {}
    for values in subsets:
        names |= dict.fromkeys(values)
    table = [["score", *scores]]
    for name in names:
        cells = [_format_number(values.get(name)) for values in subsets]
        table.append([name, *cells])

    reference = dataset.reference_name
    lines = [
        format_rows(table),
        f"A `relative_mse` of 1 is no better than {reference}.",
    ]
    r2 = metrics.get("r2", {})
    if r2.get("ood") is not None:
        text = _format_number(r2["ood"])
        lines.append(f"R² of OOD images about their mean is {text}.")
    count = len(dataset.splits.scored)
    if count < len(dataset.splits.all):
        lines.append(f"Scores are of a sample of {count:,} combinations.")
    copies = describe_copies(metrics.get("copies", {}))
    if copies:
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
    listing = _fence("\n".join(lines), language="")
    return f"{listing}\n\n{note}"


def _fence(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"
