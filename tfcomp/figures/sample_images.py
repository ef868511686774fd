"""Samples: what a model draws below what it should have drawn."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.image_rows import to_stack

MAX_SAMPLES = 8


def draw_samples(
    truth: ArrayLike,
    outputs: ArrayLike,
    positions: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    title: str = "",
    row_labels: tuple[str, str] = ("truth", "model"),
    first_row: str = "bottom",
    column_titles: Sequence[str] | None = None,
) -> Figure:
    """Draws true images above the outputs of a model, one column a sample.

    All images share one grey scale from 0 (black) to 1 (white), y upwards.

    Args:
        truth: True images, `[n, H, W]` or `[n, H, W, 1]`, n at most 8.
        outputs: Images drawn by the model, of the same size.
        positions: True positions (x, y) in pixels, `[n, 2]`. They title the
            columns and are circled, unless a coordinate is absent (NaN).
        mask: True inside the region to outline, `[W, H]`: a factor grid of
            the size of the image.
        title: Title of the figure.
        row_labels: Names of the upper and the lower row, which differ.
        first_row: Where row 0 of an image is, "bottom" or "top".
        column_titles: What the columns are, where they have no position.

    Returns:
        The figure.
    """
    num_samples = len(to_stack(truth))
    if not 1 <= num_samples <= MAX_SAMPLES:
        raise ValueError(
            f"The number of samples must be 1 to {MAX_SAMPLES}, received "
            f"{num_samples}."
        )
    rows = dict(zip(row_labels, (truth, outputs), strict=True))
    if len(rows) < 2:
        raise ValueError(f"row_labels must differ, received {row_labels}.")
    return draw_rows(
        rows,
        positions,
        mask,
        title=title,
        first_row=first_row,
        column_titles=column_titles,
    )
