"""Initial weights of the acting decoder.

The fewest factors that explain the centers and sizes of images of a single
object give the initial poses. Other poses differ between candidates.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets import Dataset
from tfcomp.datasets.splits import choose_rows

POSE = ("x", "y", "angle", "size")
POSE_TERMS = (*POSE, "template", "color")  # color is for several channels
CANVAS = 16  # logits along a side of a template
FIRST_SIZE = 0.45  # of an object, in sides of the image
MAX_MEASURED = 4096  # images with measured moments
# Widths of initial ramps of ordered factors without moments.
RAMPS = {
    "x": 0.7,
    "y": 0.7,
    "angle": 0.15,
    "size": 0.3,
}
# Turns of a periodic factor, by candidate: either way, or, as for a hue, none.
WAYS = 3 * (1, -1) + (0, 0)
FEW_WAYS = (0, 1, -1, 1)  # of fewer candidates
NOISE = 0.02
DISC = 0.61  # radius of the first template in half sides of its canvas
FLOOR = 0.02  # deviations of moments that need no further factor
MAX_FACTORS = 8  # all subsets of them are tried


class Start(NamedTuple):
    """Initial poses of a term: a common one, and one for each unit, [U]."""

    base: float
    moves: Array


def find_starts(
    dataset: Dataset,
    encoding: Any,  # layer
    background: Array,
    terms: Sequence[str],
) -> dict[str, Start]:
    """Returns first poses, by the center and the mass of training images.

    Args:
        dataset: The dataset; only its training images are read.
        encoding: The layer that encodes factors as units.
        background: The background of each channel, [C].
        terms: The pose terms that the decoder has.
    """
    train = dataset.splits.train
    rows = choose_rows(len(train), MAX_MEASURED)
    images = dataset.render_training(rows)
    code = encoding(train[rows])
    codes = []
    for factor_code in encoding.split(code):
        array = np.asarray(factor_code)
        codes.append(array)

    starts = {}
    moments = measure_moments(images, background)
    for term, moment in moments.items():
        if term in terms:
            starts[term] = fit_moment(codes, moment)
    return starts


def find_background(dataset: Dataset) -> Array:
    """Returns the ground of each channel [C], or the median of training images.

    Objects at random places leave the median of a pixel's color alone.
    """
    colors = dataset.image_shape[2]
    if dataset.ground is not None:
        return np.full(colors, dataset.ground)

    count = len(dataset.splits.train)
    step = count // 256 + 1
    rows = np.arange(0, count, step)
    images = dataset.render_training(rows)
    pixels = images.reshape(-1, colors)
    return np.median(pixels, axis=0)


def measure_moments(images: Array, background: Array) -> dict[str, Array]:
    """Returns the center and the log size of a disc of the same mass.

    Args:
        images: Images [n, H, W, C].
        background: The background of each channel, [C].

    Returns:
        `x`, `y` in halves of the shorter side from the middle of the image, and
        `size`, each [n].
    """
    contrast = images - background
    distances = np.abs(contrast)
    shares = distances.sum(axis=-1)
    largest = max(shares.max(), 1e-9)
    shares = shares / largest
    pixels = (1, 2)
    mass = shares.sum(axis=pixels)
    mass = np.maximum(mass, 1e-6)

    rows, columns = shares.shape[1:]
    side = min(rows, columns)
    across = list_places(columns, side)
    down = list_places(rows, side)
    column_mass = shares.sum(axis=1)
    row_mass = shares.sum(axis=2)
    x = column_mass @ across / mass
    y = row_mass @ down / mass

    radius = DISC * side / 2
    full = np.pi * radius**2  # pixels of a disc of size 1
    ratio = mass / full
    log_mass = np.log(ratio)
    size = 0.5 * log_mass
    return {
        "x": x,
        "y": y,
        "size": size,
    }


def list_places(count: int, side: int, subpixels: int = 1) -> Array:
    """Lists the middles of samples along an axis, from its middle.

    Args:
        count: Pixels along the axis.
        side: The pixels that are 2 long.
        subpixels: Samples for each pixel.
    """
    num_samples = count * subpixels
    middles = np.arange(num_samples) + 0.5
    middles = middles / subpixels
    offsets = middles - count / 2
    return offsets * 2 / side


def fit_moment(codes: Sequence[Array], moment: Array) -> Start:
    """Fits a moment by the subset of factors with the lowest BIC.

    Args:
        codes: The code of each factor, [n, V].
        moment: A number for each image, [n].
    """
    count = len(moment)
    mean = float(moment.mean())
    deviations = moment - mean
    ones = np.ones((count, 1))
    best: tuple[int, ...] = ()
    best_weights: Array = np.zeros(1)
    lowest = np.inf
    for subset in _list_subsets(len(codes)):
        parts = [ones]
        for number in subset:
            parts.append(codes[number])
        table = np.concatenate(parts, axis=1)
        solution = np.linalg.lstsq(
            table,
            deviations,
            rcond=1e-6,
        )
        weights, _, rank, _ = solution

        rest = table @ weights - moment + mean
        error = np.mean(rest**2)
        variance = error + FLOOR**2
        fit_bits = count * np.log(variance)
        factor_bits = rank * np.log(count)
        bits = fit_bits + factor_bits
        if bits < lowest - 1e-9:
            best = subset
            best_weights = weights
            lowest = bits

    # The mean over the values of a factor belongs to the common pose.
    base = mean + float(best_weights[0])
    start = 1
    moves = []
    for number, code in enumerate(codes):
        num_units = code.shape[1]
        part = np.zeros(num_units)
        if number in best:
            end = start + num_units
            part = best_weights[start:end]
            start = end
        part_mean = part.mean()
        base = base + part_mean
        moves.append(part - part_mean)
    return Start(base, np.concatenate(moves))


def _list_subsets(num_factors: int) -> Iterator[tuple[int, ...]]:
    """Lists sets of the first factors, the smallest first."""
    most = min(num_factors, MAX_FACTORS)
    for size in range(most + 1):
        yield from itertools.combinations(range(most), size)


def sample_poses(
    term: str,
    depth: int,
    factors: Sequence[Sequence],
    count: int,
    start: Start | None,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Samples initial numbers of a term of R candidates.

    Args:
        term: One of `POSE_TERMS`.
        depth: Numbers D of the term.
        factors: Factors as `FactorTransforms` has them, with U values in all.
        count: Number R of candidates.
        start: A measured pose, if there is one.
        rng: The random state.

    Returns:
        Common numbers [R, 1, D], and numbers of all values [R, U, D].
    """
    units = sum([factor[1] for factor in factors])
    base = np.zeros((count, 1, depth))
    size = (count, units, depth)
    noise = rng.normal(size=size)
    moves = NOISE * noise

    if term == "template":
        places = np.linspace(-1, 1, CANVAS)
        squares = places**2
        squared_distances = squares[:, None] + squares
        disc = 3 - 8 * squared_distances
        base_noise = 0.1 * rng.normal(size=base.shape)
        template = base + disc.ravel()
        return template + base_noise, moves
    if term == "color":
        return base + 1.0, moves
    if start is not None:
        start_moves = start.moves[:, None]
        return base + start.base, moves + start_moves

    if term == "size":
        base = base + np.log(FIRST_SIZE)
    ramps = []
    for factor in factors:
        ramp = _sample_ramp(
            term,
            factor,
            count,
            rng,
        )
        ramps.append(ramp)
    every_ramp = np.concatenate(ramps, axis=1)
    return base, moves + every_ramp


def _sample_ramp(
    term: str,
    factor: Sequence,
    count: int,
    rng: np.random.Generator,
) -> Array:
    """Samples the poses of V values of a factor for R candidates, [R, V, 1]."""
    _, size, kind, *cycle = factor
    line = np.linspace(-1, 1, size)
    if kind == "categorical":
        line = np.zeros(size)
    slopes = rng.normal(size=(count, 1, 1))
    slopes *= RAMPS.get(term, 0.0)
    ramp = slopes * line[:, None]
    if term != "angle" or kind != "periodic":
        return ramp

    # More steps than values, if these leave a part of the period out.
    steps = size
    if cycle:
        (steps,) = cycle
    numbers = np.arange(size)[:, None]
    turn = 2 * np.pi * numbers / steps
    ways: Array = np.resize(WAYS, count)
    if count < len(WAYS):
        ways = np.resize(FEW_WAYS, count)
    ways = rng.permutation(ways)
    ways = ways.reshape(count, 1, 1)
    is_still = ways == 0
    turned = ways * turn
    return np.where(is_still, ramp, turned)
