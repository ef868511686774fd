"""Facts of a dataset in words: its split, copies and certificates."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import number_rows

MAX_SHOWN = 4  # groups of values of a factor
Numbers = Mapping[str, float | None]
SUM = 0.99  # R^2 from which training images count as sums


def list_notes(dataset: Dataset) -> list[str]:
    """Returns notes to read before scores of this split, a line each."""
    spec, hidden = dataset.region.spec, " and ".join(dataset.splits.hidden)
    lines = [*dataset.notes, describe_sample(dataset)]
    if hidden:
        lines.append(
            f"not compositional: training lacks values of {hidden} that "
            f"--region={spec} holds out"
        )
    if dataset.region.contains(dataset.splits.train).any():
        lines.append("control: trained on the region as well (--train_all)")
    return [line for line in lines if line]


def print_notes(dataset: Dataset) -> None:
    """Prints the notes and the held-out values."""
    lines = [*list_notes(dataset), describe_held_out(dataset)]
    for line in filter(None, lines):
        print(line)


def describe_sample(dataset: Dataset) -> str:
    """Describes coverage of the results, if they leave out combinations."""
    splits, size = dataset.splits, math.prod(dataset.space.shape)
    if splits.is_complete:
        return ""
    missing = "tuning, which needs a complete grid, is left out"
    if not dataset.is_mapped:
        missing = f"{missing}, and so are maps of so large a grid"
    possible = _format_size(size)
    count = len(splits.grid)
    if splits.existing is None:
        bins = number_rows(dataset.space.to_index(splits.grid)).max() + 1
        exist = f"{bins:,} of {possible} combinations exist"
        if bins < count or bins == size:
            exist = f"{count:,} points lie in {bins:,} of {possible} bins"
        return f"{exist}; {missing}"
    subject = "analyses look" if splits.is_streamed else "evaluation looks"
    return (
        f"{subject} at a sample of {count:,} of the {len(splits.all):,} "
        f"combinations, {splits.is_ood.sum():,} of them held out "
        f"(--eval_points); {missing}"
    )


def _format_size(size: int) -> str:
    """Formats the number of combinations of a grid, which may be huge."""
    if size < 10**12:
        return f"{size:,}"
    return f"some 10^{round(math.log10(size))}"


def describe_held_out(dataset: Dataset) -> str:
    """Counts the held-out values of each factor that the region limits."""
    every = dataset.splits.all
    named = set(re.split("[:,|&]", dataset.region.spec))
    parts = []
    index = dataset.space.to_index(every.factors)
    for factor, column in zip(dataset.space, index.T, strict=True):
        held_out = np.unique(column[every.is_ood])
        known = np.intersect1d(held_out, column[~every.is_ood])
        if factor.name in named or len(known) < factor.size:
            parts.append(
                f"{factor.name}: {len(known)} of {factor.size} values in "
                f"part, {len(held_out) - len(known)} altogether"
            )
    is_limited = parts and every.is_ood.any()
    return f"held out of {'; '.join(parts)}" if is_limited else ""


def describe_copies(summary: Mapping[str, Any]) -> str:
    """Describes `Copies.summary`; empty without equal images."""
    parts = []
    if held_out := summary.get("num_held_out"):
        copies = summary["num_copies"]
        nothing = " (nothing new is held out)" if copies == held_out else ""
        parts.append(
            f"{copies:,} of {held_out:,} held-out images are equal to a "
            f"training image{nothing}"
        )
    for kind, where in (("aliases", ""), ("partial_aliases", "some ")):
        parts += [
            f"{name}: {_show(groups)} in {where}training images"
            for name, groups in summary.get(kind, {}).items()
        ]
    return "; ".join(parts)


def describe_limits(summary: Mapping[str, Any]) -> str:
    """Describes the limits of a certificate, also where images are equal."""
    aliases = summary.get("aliases", {})
    limits = "if what adds up can be read off an image"
    if not aliases:
        return limits
    values = "; ".join(f"{name} {_show(g)}" for name, g in aliases.items())
    return (
        f"{limits}; training images do not tell {values} apart where all else "
        "is equal"
    )


def _show(groups: list[str]) -> str:
    more = len(groups) - MAX_SHOWN
    return ", ".join(groups[:MAX_SHOWN] + [f"{more:,} more"] * (more > 0))


def format_share(share: float) -> str:
    """Formats a share: only all of it is 100.0%, and only nothing is 0.0%."""
    text = f"{share:.1%}"
    words = {"100.0%": "over 99.9%", "0.0%": "under 0.1%"}
    return text if share in (0.0, 1.0) else words.get(text, text)


def describe_certificates(summary: Mapping[str, Numbers]) -> str:
    """Formats the shares, as `100.0% at order 1, 0.0% at order 2`."""
    parts = []
    for order, numbers in summary.items():
        if (share := numbers["certified"]) is not None:
            missing, noise = numbers["missing_rank"], describe_noise(numbers)
            more = f"images missing: {missing:,}" if missing else ""
            note = "; ".join(filter(None, (more, noise)))
            note = f" ({note})" if note else ""
            parts.append(f"{format_share(share)} at order {order}{note}")
    return ", ".join(parts)


def describe_noise(numbers: Numbers) -> str:
    """Formats the variance of determined sums; empty if it is unknown."""
    mean, most = numbers.get("noise_mean"), numbers.get("noise_max")
    if mean is None or most is None:
        return ""
    text = f"variance {mean:.2g} times an image's"
    is_even = f"{mean:.2g}" == f"{most:.2g}"
    return text if is_even else f"{text}, at most {most:.2g}"


def describe_order(explained: Mapping[str, float]) -> str:
    """Says at which order training images are sums of effects."""
    if not explained:
        return ""
    is_sum = [order for order, r2 in explained.items() if r2 >= SUM]
    none = f"no sums of effects up to order {list(explained)[-1]}"
    verdict = f"sums of effects of order {is_sum[0]}" if is_sum else none
    shares = [f"{r2:.2g} at order {order}" for order, r2 in explained.items()]
    numbers = f"R2 of training images from the others: {', '.join(shares)}"
    return f"{verdict} ({numbers})"
