"""Checks the outputs of a model from elsewhere.

Outputs have a row for each combination, numbers are real and finite, and images
have the range of the data. Anything else is an error of one line with the cure,
or a note.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import MAX_AVERAGED, choose_rows

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


def check_finite(dataset: Dataset, images: np.ndarray) -> None:
    """Raises a ValueError that names the combinations without finite images."""
    is_finite = np.isfinite(images).reshape(len(images), -1).all(axis=1)
    if is_finite.all():
        return
    missing = dataset.space.to_index(dataset.splits.grid[~is_finite])
    names = "; ".join(map(dataset.space.name_point, missing[:MAX_NAMED]))
    more = f" and {len(missing) - MAX_NAMED:,} more"
    raise ValueError(
        f"images must be finite, got others at {len(missing):,} of "
        f"{len(images):,} combinations: {names}"
        f"{more * (len(missing) > MAX_NAMED)}"
    )


def list_notes(
    dataset: Dataset,
    images: np.ndarray,
    draw: Callable[[np.ndarray], np.ndarray],
    samples: int,
) -> list[str]:
    """Describes odd images: of another range, or random ones."""
    grid, notes = dataset.splits.grid, []
    truth = dataset.render_array(grid[choose_rows(len(grid), MAX_AVERAGED)])
    darkest, brightest = float(truth.min()), float(truth.max())
    margin = MARGIN * (brightest - darkest)
    low, high = float(images.min()), float(images.max())
    if low < darkest - margin or high > brightest + margin:
        notes.append(
            f"outputs from {low:.3g} to {high:.3g}, images from {darkest:.3g} "
            f"to {brightest:.3g}: logits? 0 to 255? -1 to 1?"
        )
    first, second = draw(grid[:COMPARED]), draw(grid[:COMPARED])
    if samples == 1 and not np.allclose(first, second, 1e-3, 1e-4):
        notes.append("images differ from call to call: samples=10 averages")
    return notes
