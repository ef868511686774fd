"""Held-out images that training contains, and values that look the same.

A square that turns by 90 degrees is the same image. A held-out combination
with such an image needs no composition, and no decoder can learn two values of
a factor apart whose training images are equal.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfcomp.datasets.factors import (
    FactorSpace,
    make_keys,
    number,
    number_columns,
    number_rows,
)
from tfcomp.datasets.splits import Splits

Render = Callable[[np.ndarray], Iterable[np.ndarray]]
Aliases = dict[str, list[np.ndarray]]


@dataclass(frozen=True)
class Copies:
    """Equal images of a split."""

    is_copy: np.ndarray  # of all combinations: held out, has a training image
    # The entry of `metrics.json`, empty without equal images. `num_repeated`
    # training combinations have the image of another one; `partial_aliases`
    # are values, but `aliases`, with equal images somewhere.
    summary: dict[str, Any]
    # Values with equal training images wherever all other factors are equal.
    aliases: Mapping[str, list[np.ndarray]] = field(default_factory=dict)


def find_copies(render: Render, space: FactorSpace, splits: Splits) -> Copies:
    """Compares all held-out and training images, by hashes of their pixels."""
    every = splits.all
    distinct = np.unique(number_rows(splits.train), return_index=True)[1]
    train, is_copy = splits.train[distinct], every.is_ood.copy()
    compared = np.concatenate([train, every.factors[is_copy]])
    images = _number_images(render, compared)
    images, held_out = images[: len(train)], images[len(train) :]
    is_copy[is_copy] = np.isin(held_out, images)
    is_repeated = np.bincount(images)[images] > 1
    if not is_copy.any() and not is_repeated.any():
        return Copies(is_copy, {})
    aliases, partial = _list_aliases(space, train, images)
    summary = {
        "num_copies": int(is_copy.sum()),
        "num_held_out": int(every.is_ood.sum()),
        "num_repeated": int(is_repeated.sum()),
        "aliases": _name_values(space, aliases),
        "partial_aliases": _name_values(space, partial),
    }
    return Copies(is_copy, summary, aliases)


def _number_images(render: Render, table: np.ndarray) -> np.ndarray:
    """Returns equal numbers for equal images, [n], by hashes of 64 bits."""
    hashes: list[int] = []
    for images in render(table):
        # Adding 1 rounds away the last bits of pixels near 0.
        for image in images:
            shown = image.astype(np.float32) + np.float32(1)
            if shown.ndim == 4:  # all of a combination, in any order
                shown = np.unique(shown, axis=0)
            digest = hashlib.blake2b(shown.data, digest_size=8).digest()
            hashes.append(int.from_bytes(digest, "little"))
    return number(np.array(hashes, np.uint64))


def _list_aliases(
    space: FactorSpace, train: np.ndarray, images: np.ndarray
) -> tuple[Aliases, Aliases]:
    """Returns `aliases` and `partial_aliases` from the numbers of images."""
    aliases: Aliases = {}
    partial: Aliases = {}
    places = number_columns(train)
    for place, factor in enumerate(space):
        context = number(make_keys(np.delete(places, place, axis=1)))
        same = number_rows(np.stack([context, images], axis=1))
        is_equal = np.bincount(same)[same] > 1
        values = np.unique(train[is_equal, place])
        rows = np.isin(train[:, place], values)
        if not rows.any():
            continue
        levels = np.searchsorted(values, train[rows, place])
        equal = _count_pairs(same[rows], levels)
        is_apart = _count_pairs(context[rows], levels) > equal
        groups = _connect((equal > 0) & ~is_apart)
        groups = [g for g in groups if not is_apart[np.ix_(g, g)].any()]
        others = [g for g in _connect(equal > 0) if g not in groups]
        for named, found in ((aliases, groups), (partial, others)):
            if found:
                named[factor.name] = [values[group] for group in found]
    return aliases, partial


def _count_pairs(groups: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Returns the number of groups that contain both levels, [V, V]."""
    from scipy import sparse

    ones = np.ones(len(levels), np.int64)
    table = sparse.csr_array((ones, (groups, levels)))
    return (table.T @ table).toarray()


def _connect(related: np.ndarray) -> list[list[int]]:
    """Returns the connected levels, of more than one each."""
    from scipy.sparse import csgraph

    count, labels = csgraph.connected_components(related, directed=False)
    groups = [np.flatnonzero(labels == n).tolist() for n in range(count)]
    return [group for group in groups if len(group) > 1]


def _name_values(space: FactorSpace, aliases: Aliases) -> dict[str, list[str]]:
    return {
        name: [" = ".join(map(space[name].describe, g)) for g in groups]
        for name, groups in aliases.items()
    }
