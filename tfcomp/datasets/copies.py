"""Held-out images that training contains, and values that look the same.

A square that turns by 90 degrees is the same image. A held-out combination
with such an image needs no composition, and no decoder can learn two values of
a factor apart whose training images are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.splits import Splits

BLOCK = 1024  # images at a time
MAX_SHOWN = 4  # groups of values of a factor
# Indices of training values of one factor; each group looks the same.
Groups = list[list[int]]


@dataclass(frozen=True)
class Copies:
    """Equal images of a split.

    Attributes:
        is_copy: Mask of all existing combinations [n]: held out, with the
            image of a training combination.
        num_held_out: Number of held-out combinations.
        num_repeated: Number of training combinations whose image another
            training combination has.
        aliases: Values by factor that training never tells apart: wherever
            all other factors are equal, so are the images.
        partial: Other values by factor with equal images somewhere, where all
            other factors are equal.
    """

    is_copy: np.ndarray
    num_held_out: int
    num_repeated: int = 0
    aliases: dict[str, list[str]] = field(default_factory=dict)
    partial: dict[str, list[str]] = field(default_factory=dict)

    def summarize(self) -> dict[str, Any]:
        """Returns the entry of `metrics.json`; empty without equal images."""
        num_copies = int(self.is_copy.sum())
        if not num_copies and not self.num_repeated:
            return {}
        return {
            "num_copies": num_copies,
            "num_held_out": self.num_held_out,
            "num_repeated": self.num_repeated,
            "aliases": self.aliases,
            "partial_aliases": self.partial,
        }


def find_copies(
    render: Callable[[np.ndarray], np.ndarray],
    space: FactorSpace,
    splits: Splits,
) -> Copies:
    """Compares all held-out and training images, by hashes of their pixels."""
    every = splits.all
    is_copy = np.zeros(len(every), bool)
    num_held_out = int(every.is_ood.sum())
    codes = _number_values(splits.train)
    distinct = np.unique(_number_rows(codes), return_index=True)[1]
    train, codes = splits.train[distinct], codes[distinct]
    images = _hash_images(render, train)
    if num_held_out:
        held_out = _hash_images(render, every.factors[every.is_ood])
        is_copy[every.is_ood] = np.isin(held_out, images)
    _, images, counts = np.unique(
        images, return_inverse=True, return_counts=True
    )
    num_repeated = int(counts[counts > 1].sum())
    if not num_repeated:
        return Copies(is_copy, num_held_out)
    found = _list_aliases(space, train, codes, images)
    return Copies(is_copy, num_held_out, num_repeated, *found)


def _hash_images(
    render: Callable[[np.ndarray], np.ndarray], table: np.ndarray
) -> np.ndarray:
    """Returns digests of images with 128 bits, [n]."""
    digests = []
    for part in np.array_split(table, len(table) // BLOCK + 1):
        # Adding 1 rounds away differences in the last bits of pixels near 0.
        images = np.float32(render(part)) + np.float32(1)
        rows = np.ascontiguousarray(images)
        digests += [hashlib.sha256(row).digest()[:16] for row in rows]
    return np.array(digests, "S16")


def _list_aliases(
    space: FactorSpace,
    train: np.ndarray,
    codes: np.ndarray,
    images: np.ndarray,
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Returns values that training never tells apart, and not always."""
    aliases: dict[str, list[str]] = {}
    partial: dict[str, list[str]] = {}
    for place, factor in enumerate(space):
        others = np.delete(codes, place, axis=1)
        groups = _find_groups(codes[:, place], others, images)
        values = np.unique(train[:, place])
        for named, found in zip((aliases, partial), groups, strict=True):
            if found:
                named[factor.name] = _name_groups(factor, values, found)
    return aliases, partial


def _find_groups(
    levels: np.ndarray, others: np.ndarray, images: np.ndarray
) -> tuple[Groups, Groups]:
    """Returns groups of levels that are never told apart, and not always.

    Levels and images are numbers [n], and so are the other factors [n, F - 1].
    """
    context = _number_rows(others)
    same = _number_rows(np.stack([context, images], axis=1))
    is_equal = np.bincount(same)[same] > 1
    known = np.unique(levels[is_equal])
    rows = np.isin(levels, known)
    places = np.searchsorted(known, levels[rows])
    both = _count_pairs(context[rows], places)
    equal = _count_pairs(same[rows], places)
    is_apart = both > equal
    never = _connect((equal > 0) & ~is_apart)
    never = [g for g in never if not is_apart[np.ix_(g, g)].any()]
    partial = [g for g in _connect(equal > 0) if g not in never]
    return _select(known, never), _select(known, partial)


def _number_values(table: np.ndarray) -> np.ndarray:
    """Returns the number of each value among those of its column, [n, F]."""
    columns = [np.unique(c, return_inverse=True)[1] for c in table.T]
    return np.stack(columns, axis=1)


def _select(levels: np.ndarray, groups: Groups) -> Groups:
    return [levels[group].tolist() for group in groups]


def _number_rows(table: np.ndarray) -> np.ndarray:
    """Returns equal numbers for equal rows of a table of numbers, [n]."""
    numbers = np.zeros(len(table), np.int64)
    for column in table.T:
        keys = numbers * (column.max() + 1) + column
        numbers = np.unique(keys, return_inverse=True)[1]
    return numbers


def _count_pairs(groups: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Returns the number of groups that contain both levels, [V, V]."""
    from scipy import sparse

    if not len(levels):
        return np.zeros((0, 0), int)
    ones = np.ones(len(levels), np.int64)
    table = sparse.csr_array((ones, (groups, levels)))
    return (table.T @ table).toarray()


def _connect(related: np.ndarray) -> list[list[int]]:
    """Returns the connected levels, of more than one each."""
    from scipy.sparse import csgraph

    if not len(related):
        return []
    count, labels = csgraph.connected_components(related, directed=False)
    groups = [np.flatnonzero(labels == n).tolist() for n in range(count)]
    return [group for group in groups if len(group) > 1]


def _name_groups(
    factor: Factor, values: np.ndarray, groups: Groups
) -> list[str]:
    return [
        " = ".join(factor.describe(values[level]) for level in group)
        for group in groups
    ]


def describe_copies(summary: Mapping[str, Any]) -> str:
    """Describes an entry of `metrics.json`; empty without equal images."""
    if not summary:
        return ""
    parts = []
    if held_out := summary["num_held_out"]:
        copies = summary["num_copies"]
        nothing = " (nothing new is held out)" if copies == held_out else ""
        parts.append(
            f"{copies:,} of {held_out:,} held-out images are equal to a "
            f"training image{nothing}"
        )
    aliases, partial = summary["aliases"], summary["partial_aliases"]
    for named, where in (
        (aliases, "in training"),
        (partial, "in some training"),
    ):
        parts += [
            f"{name}: {_show(groups)} {where} images"
            for name, groups in named.items()
        ]
    if summary["num_repeated"] and not aliases and not partial:
        count = summary["num_repeated"]
        parts.append(f"{count:,} training images are equal to another one")
    return "; ".join(parts)


def describe_limits(summary: Mapping[str, Any]) -> str:
    """Says what a certificate means where training images are equal."""
    aliases = summary.get("aliases", {})
    values = "; ".join(f"{name} {_show(g)}" for name, g in aliases.items())
    return (
        values
        and "determined at order 1, if what adds up can be read off an image; "
        f"training images do not tell {values} apart where all else is equal"
    )


def _show(groups: list[str]) -> str:
    more = len(groups) - MAX_SHOWN
    shown = groups[:MAX_SHOWN] + [f"{more:,} more"] * (more > 0)
    return ", ".join(shown)
