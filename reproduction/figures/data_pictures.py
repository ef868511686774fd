"""Pictures of training images, without any run."""

import numpy as np

from reproduction.figures.paper_figure import Drawn, FigureRuns
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import make_dataset
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.pictures import choose_spread, get_pixel_mask

COLUMNS = 8


def draw_training(
    _: FigureRuns,
    flagfile: str,
    count: int = COLUMNS,
) -> Drawn:
    """Draws training images of a flagfile, in rows of eight.

    Args:
        flagfile: The name of a flagfile that tfcomp ships, as `donut`.
        count: The number of images, a multiple of eight; a spread of all.
    """
    config = parse_config([f"--flagfile={flagfile}.flags"])
    dataset = make_dataset(config)
    train = dataset.splits.train
    sample = choose_spread(np.arange(len(train)), count)
    images = dataset.render_training(sample)
    pictures = dataset.to_pictures(images)

    labels = [_describe_point(dataset, train[row]) for row in sample]
    caption = f"{len(sample)} of {len(train)} training images, {flagfile}."
    rows = {"training": pictures}
    if count > COLUMNS:
        rows = {}
        for start in range(0, len(sample), COLUMNS):
            rows[labels[start]] = pictures[start : start + COLUMNS]
        labels = []
        caption += " The label of a row is its first image."
    figure = draw_rows(
        rows,
        mask=get_pixel_mask(dataset),
        first_row=dataset.first_row,
        column_titles=labels,
    )
    return {caption: figure}


def _describe_point(dataset: Dataset, point: np.ndarray) -> str:
    """Describes factors with a value: `x 3, y 5`; a stripe has one."""
    parts = []
    for factor, value in zip(dataset.space, point, strict=True):
        if not np.isnan(value):
            parts.append(f"{factor.name} {factor.describe(value)}")
    return ", ".join(parts)
