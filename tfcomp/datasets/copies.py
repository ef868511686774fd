"""Held-out images that training contains, and values that look the same.

A square that turns by 90 degrees is the same image. A held-out combination
with such an image needs no composition, and no decoder can learn two values of
a factor apart whose training images are equal.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import (
    FactorSpace,
    make_keys,
    number_columns,
    number_rows,
    number_values,
)
from tfcomp.datasets.splits import Splits

# Rounding moves up by this share of a gray level, or noise would split images
# with pixels halfway between two levels, which sprites at the half have.
SHIFT = 0.1
Render = Callable[[Array], Iterable[Array]]
# Groups of values of a factor, an array each, by the factor's name.
Aliases = dict[str, list[Array]]


@dataclass(frozen=True)
class Copies:
    """Equal images of a split.

    Attributes:
        is_copy: Mask of all combinations, [n]: held out, although training has
            an equal image.
        summary: The entry `copies` of `metrics.json`, empty without equal
            images. `num_repeated` counts training combinations whose image
            another one has, too.
        aliases: Values with equal training images wherever all other factors
            are equal, by factor.
    """

    is_copy: Array
    summary: dict[str, Any]
    aliases: Aliases = field(default_factory=dict)


def find_copies(render: Render, space: FactorSpace, splits: Splits) -> Copies:
    """Compares held-out and training images, by hashes of their gray levels.

    Args:
        render: From factor values [n, F] to parts of the n images, in order.
        space: The factors.
        splits: Training examples, and all combinations that exist.
    """
    points = splits.all
    is_ood = points.is_ood
    held_out = points.factors[is_ood]
    train_rows = number_rows(splits.train)
    _, first = np.unique(train_rows, return_index=True)
    train = splits.train[first]

    table = np.concatenate([train, held_out])
    numbers = _number_images(render, table)
    num_train = len(train)
    images = numbers[:num_train]
    held_out_images = numbers[num_train:]

    is_copy = is_ood.copy()
    is_copy[is_ood] = np.isin(held_out_images, images)
    counts = _count_equal(images)
    is_repeated = counts > 1
    has_equal = is_copy.any() or is_repeated.any()
    if not has_equal:
        return Copies(is_copy, summary={})

    aliases = _list_aliases(space, train, images)
    summary = {
        "num_copies": int(is_copy.sum()),
        "num_held_out": int(is_ood.sum()),
        "num_repeated": int(is_repeated.sum()),
        "aliases": _name_values(space, aliases),
    }
    return Copies(is_copy, summary, aliases)


def _count_equal(numbers: Array) -> Array:
    """Counts how often each of the numbers occurs, [n]."""
    counts = np.bincount(numbers)
    return counts[numbers]


def _number_images(render: Render, table: Array) -> Array:
    """Returns equal numbers for equal images, [n], by hashes of 64 bits."""
    hashes: list[int] = []
    for images in render(table):
        for image in images:
            code = _hash_image(image)
            hashes.append(code)
    table = np.array(hashes, np.uint64)
    return number_values(table)


def _hash_image(image: Array) -> int:
    """Hashes gray levels, 255 of them from 0 to 1, [H, W, C] or [n, H, W, C].

    So images are equal up to half a level: noise of 1e-6 does not hide a copy.
    """
    levels = 255 * image.astype(np.float64)
    rounded = np.rint(levels + SHIFT)
    pixels = rounded.astype(np.int32)
    if pixels.ndim == 3:
        digest = _digest(pixels.data)
    else:
        # All images of a combination, in any order. Digests are sorted, since
        # NumPy takes .1 s to sort images of 64 x 64 pixels.
        digests = {_digest(part.data) for part in pixels}
        digest = _digest(b"".join(sorted(digests)))
    return int.from_bytes(digest, "little")


def _digest(content: Any) -> bytes:
    """Hashes bytes to 8 bytes."""
    code = hashlib.blake2b(content, digest_size=8)
    return code.digest()


def _list_aliases(
    space: FactorSpace,
    train: Array,
    images: Array,
) -> Aliases:
    """Returns values with equal images wherever all else is equal.

    Args:
        space: The factors.
        train: Distinct training combinations, [n, F].
        images: Equal numbers for equal images, [n].
    """
    aliases: Aliases = {}
    places = number_columns(train)
    for column, factor in enumerate(space):
        others = np.delete(places, column, axis=1)
        keys = make_keys(others)
        groups = _group_values(
            values=train[:, column],
            context=number_values(keys),
            images=images,
        )
        if groups:
            aliases[factor.name] = groups
    return aliases


def _group_values(
    values: Array,
    context: Array,
    images: Array,
) -> list[Array]:
    """Groups the values of one factor by equal images.

    Args:
        values: The value in each training combination, [n].
        context: Equal numbers where all other factors are equal, [n].
        images: Equal numbers for equal images, [n].

    Returns:
        Groups whose images are equal in all contexts that have both values.
    """
    pairs = np.stack([context, images], axis=1)
    context_images = number_rows(pairs)
    is_equal = _count_equal(context_images) > 1
    levels = np.unique(values[is_equal])
    rows = np.isin(values, levels)
    if not rows.any():
        return []

    values = values[rows]
    context = context[rows]
    context_images = context_images[rows]
    places = np.searchsorted(levels, values)
    num_equal = _count_pairs(context_images, places)
    num_shared = _count_pairs(context, places)
    is_apart = num_shared > num_equal
    is_related = (num_equal > 0) & ~is_apart

    groups = []
    for group in _connect(is_related):
        within = np.ix_(group, group)
        if not is_apart[within].any():
            groups.append(levels[group])
    return groups


def _count_pairs(groups: Array, levels: Array) -> Array:
    """Counts the groups that contain both levels, [V, V]."""
    from scipy import sparse

    ones = np.ones(len(levels), np.int64)
    places = (groups, levels)
    table = sparse.csr_array((ones, places))
    products = table.T @ table
    return products.toarray()


def _connect(is_related: Array) -> list[list[int]]:
    """Returns the groups of connected levels that have two or more."""
    from scipy.sparse import csgraph

    count, labels = csgraph.connected_components(
        is_related,
        directed=False,
    )
    groups = []
    for label in range(count):
        is_member = labels == label
        group = np.flatnonzero(is_member)
        if len(group) > 1:
            groups.append(group.tolist())
    return groups


def _name_values(
    space: FactorSpace,
    aliases: Aliases,
) -> dict[str, list[str]]:
    """Returns the groups in words, as `0 = 180`."""
    named: dict[str, list[str]] = {}
    for name, groups in aliases.items():
        describe = space[name].describe
        texts = []
        for group in groups:
            values = map(describe, group)
            texts.append(" = ".join(values))
        named[name] = texts
    return named
