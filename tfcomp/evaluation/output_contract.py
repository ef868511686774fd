"""Checks the outputs of a model from elsewhere.

Outputs have a row for each combination, numbers are real, and images have the
range of the data. Anything else is an error of one line with the cure, or a
note. Combinations whose images are not finite are named and left out.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import MAX_AVERAGED, choose_rows

Draw = Callable[[np.ndarray], np.ndarray]
MAX_NAMED = 3
COMPARED = 8  # points at which two calls are compared
# Share of the range of the true images by which outputs may leave it.
MARGIN = 0.5


def to_array(name: str, value: Any, num_rows: int) -> np.ndarray:
    """Converts one output of a function to float32 numbers.

    Raises:
        ValueError: If it has not a row for each combination, or is not real.
    """
    if isinstance(value, tuple | list) and len(value) != num_rows:
        raise ValueError(
            f"the model returns {len(value)} outputs: return the images, or a "
            "dictionary with 'image' and named stages"
        )
    try:
        array = np.asarray(value)
    except (RuntimeError, TypeError) as error:  # a tensor of PyTorch
        cure = "return tensor.detach().cpu().float().numpy()"
        raise ValueError(f"{name} must be an array: {cure}") from error
    check_output(name, array.shape, array.dtype, num_rows)
    return array.astype(np.float32)


def check_output(
    name: str, shape: tuple[int, ...], dtype: np.dtype, num_rows: int
) -> None:
    """Raises a ValueError if rows or type of an output are invalid."""
    if dtype.kind == "c":
        raise ValueError(f"{name} must be real, got {dtype}: return its .real")
    if dtype.kind not in "buif":
        raise ValueError(f"{name} must be an array of numbers, got {dtype}")
    if not shape or shape[0] != num_rows:
        got = f"{shape[0]} rows" if shape else "a number"
        raise ValueError(
            f"{name} must have a row for each of {num_rows} combinations, got "
            f"{got}: return [n, ...] for factors [n, F]"
        )


def leave_out(
    dataset: Dataset,
    images: np.ndarray,
    draw: Draw,
) -> tuple[Dataset, np.ndarray]:
    """Leaves out the combinations at which images are not finite.

    Args:
        dataset: The data; its notes will name what is left out.
        images: Outputs at all points of the grid, [n, H, W, C].
        draw: From points [n, F] to outputs, for scores of more points.

    Returns:
        The data, and the outputs at the points that are left.

    Raises:
        ValueError: If images are finite at no ID combination.
    """
    splits, space = dataset.splits, dataset.space
    every, is_finite = splits.scored, _find_finite(images)
    is_scored = is_finite
    if splits.is_streamed:
        size = len(splits.grid)
        starts = range(0, len(every), size)
        parts = [every.factors[start : start + size] for start in starts]
        is_scored = np.concatenate([_find_finite(draw(p)) for p in parts])
    if is_finite.all() and is_scored.all():
        return dataset, images
    if not (is_finite & splits.is_id).any():
        raise ValueError("images must be finite, they are at no ID combination")
    missing = space.to_index(every.factors[~is_scored])
    names = "; ".join(map(space.name_point, missing[:MAX_NAMED]))
    more = f" and {len(missing) - MAX_NAMED:,} more"
    note = (
        f"outputs are not finite at {len(missing):,} of {len(every):,} "
        f"combinations, which are left out: {names}"
        f"{more * (len(missing) > MAX_NAMED)}"
    )
    left = dataclasses.replace(
        splits,
        points=splits.points[is_finite],
        existing=every[is_scored] if splits.is_streamed else splits.all,
        is_complete=False,
    )
    notes = (*dataset.notes, note)
    dataset = dataclasses.replace(dataset, splits=left, notes=notes)
    return dataset, images[is_finite]


def _find_finite(images: np.ndarray) -> np.ndarray:
    return np.isfinite(images).reshape(len(images), -1).all(axis=1)


def list_notes(
    dataset: Dataset,
    images: np.ndarray,
    draw: Draw,
    samples: int,
) -> list[str]:
    """Describes odd images: of another range, or random ones."""
    grid, notes = dataset.splits.grid, []
    truth = dataset.render_array(grid[choose_rows(len(grid), MAX_AVERAGED)])
    darkest, brightest = float(truth.min()), float(truth.max())
    margin = MARGIN * (brightest - darkest)
    low, high = float(images.min()), float(images.max())
    if low < darkest - margin or high > brightest + margin:
        guess = "logits?"
        if low >= 0 and high > 100:
            guess = "0 to 255? (/ 255)"
        elif low >= -1.01 and high <= 1.01:
            guess = "-1 to 1? ((images + 1) / 2)"
        notes.append(
            f"outputs from {low:.3g} to {high:.3g}, images from {darkest:.3g} "
            f"to {brightest:.3g}: {guess}"
        )
    first, second = draw(grid[:COMPARED]), draw(grid[:COMPARED])
    if samples == 1 and not np.allclose(
        first, second, 1e-3, 1e-4, equal_nan=True
    ):
        notes.append("images differ from call to call: samples=10 averages")
    return notes
