"""Pictures of an evaluated run, for TensorBoard and reports."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.grid_maps import Plane, find_interval, list_curves
from tfcomp.datasets.splits import choose_rows
from tfcomp.datasets.views import make_map
from tfcomp.figures import exhibits, map_plots
from tfcomp.figures.curve_plots import draw_curves, title_stage
from tfcomp.figures.exhibits import Plot
from tfcomp.figures.image_rows import draw_rows
from tfcomp.metrics.embeddings import EmbeddingAnalysis
from tfcomp.metrics.scores import Evaluation

SHOWN_SAMPLES = 8
NARROW_SAMPLES = 4  # in a column of print
_POWERS = {
    1: "",
    2: "²",
    3: "³",
}


def choose_spread(rows: np.ndarray, count: int = 0) -> np.ndarray:
    """Samples rows, in order: evenly spaced ones would lie on a line.

    Args:
        rows: Numbers of rows, [n].
        count: The most that are sampled; by default 8, or 4 in a column of
            print.
    """
    if not count:
        count = SHOWN_SAMPLES
        if exhibits.is_narrow():
            count = NARROW_SAMPLES
    sample = choose_rows(len(rows), count)
    return rows[sample]


def picture_samples(
    dataset: Dataset,
    evaluation: Evaluation,
    subset: str,
    title: str,
    count: int = 0,
) -> Plot:
    """Shows truth above output for a spread of points.

    Args:
        dataset: The data.
        evaluation: Outputs at all combinations that are scored.
        subset: `id` or `ood`.
        title: The title of the figure.
        count: The number of points; 0 fills the width.
    """
    points = np.flatnonzero(dataset.subsets[subset])
    rows = choose_spread(points, count)
    return picture_rows(
        dataset,
        {"model": evaluation},
        rows,
        title=title,
    )


def picture_rows(
    dataset: Dataset,
    evaluations: Mapping[str, Evaluation],
    rows: np.ndarray,
    *,
    title: str = "",
    with_split: bool = False,
) -> Plot:
    """Shows the truth above a row of outputs for each evaluation.

    Args:
        dataset: The data.
        evaluations: Outputs by the labels of their rows.
        rows: The points, among those that are scored.
        title: The title of the figure.
        with_split: Whether titles of points tell if they are held out.
    """
    first = next(iter(evaluations.values()))
    truth = dataset.to_pictures(first.truth[rows])
    images = {dataset.truth_label: truth}
    for label, evaluation in evaluations.items():
        outputs = evaluation.images[rows]
        images[label] = dataset.to_pictures(outputs)

    positions = None
    if dataset.has_position:
        positions = dataset.splits.grid[rows]
    describe = describe_points
    if with_split:
        describe = title_points
    return draw_rows(
        images,
        positions,
        mask=get_pixel_mask(dataset),
        title=title,
        first_row=dataset.first_row,
        column_titles=describe(dataset, rows),
    )


def describe_points(dataset: Dataset, rows: np.ndarray) -> list[str]:
    """Returns the factor values of points, as titles of images.

    Args:
        dataset: The data.
        rows: The points, among those that are scored.
    """
    separator = ", "
    if len(dataset.space) > 2:
        separator = "\n"
    titles = []
    for point in dataset.splits.grid[rows]:
        parts = []
        named = zip(dataset.space, point, strict=True)
        for factor, value in named:
            text = "–"
            if not np.isnan(value):
                text = factor.describe(value)
            if not dataset.has_position:
                text = f"{factor.name} {text}"
            parts.append(text)
        titles.append(separator.join(parts))
    return titles


def title_points(dataset: Dataset, rows: np.ndarray) -> list[str]:
    """Returns the split and the factor values of points, as titles.

    Args:
        dataset: The data.
        rows: The points, among those that are scored.
    """
    subsets = np.where(dataset.splits.is_ood[rows], "OOD", "ID")
    points = describe_points(dataset, rows)
    return list(map("{} {}".format, subsets, points))


def get_pixel_mask(dataset: Dataset) -> np.ndarray | None:
    """Returns the region over the pixels, if factors are pixel positions."""
    rows, columns, _ = dataset.image_shape
    has_pixels = dataset.space.shape == (columns, rows)
    is_pixels = dataset.has_position and has_pixels
    if not is_pixels or not dataset.splits.is_complete:
        return None
    region = make_map(dataset, dataset.splits.is_ood)
    return region.mask


def picture_error_curve(dataset: Dataset, error: np.ndarray) -> Plot:
    """Plots the MSE against the one ordered factor, a line per curve.

    Args:
        dataset: The data.
        error: The MSE [n] of all combinations.
    """
    import pandas as pd  # here: other pictures need none

    curves = list_curves(dataset.space)
    factor = curves[0].factor
    lines = {}
    gaps = set()
    for curve in curves:
        lines[curve.label] = error[curve.rows]
        gaps.add(find_interval(curve, dataset.splits.is_ood))
    gaps.discard(None)

    shaded = None
    if len(gaps) == 1:  # for all curves that have one
        shaded = gaps.pop()
    table = pd.DataFrame(lines, factor.values())
    return draw_curves(
        table,
        xlabel=factor.label,
        ylabel="MSE over pixels",
        shaded=shaded,
    )


def picture_errors(
    dataset: Dataset,
    errors: Mapping[str, np.ndarray],
    label: str = "",
    planes: Sequence[Plane] = (),
) -> Plot:
    """Plots errors as maps whose colors begin at 0.

    Colors from the least error on would make a model that fails everywhere
    alike look as one that fails here and there.

    Args:
        dataset: The data.
        errors: Relative MSE [n] of all combinations by title.
        label: The label of the color bar, by default the reference.
        planes: The maps, by default all of the dataset.
    """
    numbers = np.concatenate(list(errors.values()))
    is_positive = np.isfinite(numbers) & (numbers > 0)
    highest = numbers.max(where=is_positive, initial=0) or 1.0
    return picture_maps(
        dataset,
        errors,
        label or label_error(dataset),
        limits=(0.0, highest),
        planes=planes,
    )


def label_error(dataset: Dataset) -> str:
    """Returns the label of the relative MSE, with what has 1."""
    return f"relative MSE ({dataset.reference_name}: 1)"


def picture_maps(
    dataset: Dataset,
    maps: Mapping[str, np.ndarray],
    label: str,
    title: str = "",
    limits: tuple[float, float] | None = None,
    planes: Sequence[Plane] = (),
    cmap: str | None = None,
) -> Plot:
    """Plots numbers as maps.

    Args:
        dataset: The data.
        maps: Numbers [n] of all combinations by title.
        label: The label of the color bar.
        title: The title of the figure.
        limits: The ends of the color scale, by default of the numbers.
        planes: The maps, by default all of the dataset.
        cmap: Colors; by default from rcParams.
    """
    if not planes:
        planes = dataset.planes
    panels = {}
    for name, values in maps.items():
        grid_map = make_map(dataset, values)
        for plane in planes:
            # Two maps may have the same place, but not the same axes, too.
            place = name
            if plane.held:
                factors = [factor.name for factor in plane.factors]
                names = " and ".join(factors)
                place = f"{names} at {plane.held}"
                if len(maps) > 1:
                    place = f"{name}, {place}"
            panels[place] = grid_map.cut(plane)
    return map_plots.draw_maps(
        panels,
        label=label,
        title=title,
        limits=limits,
        cmap=cmap,
    )


def describe_planes(dataset: Dataset) -> str:
    """Describes where maps of two of several factors are."""
    if len(dataset.space) == 2:
        return ""
    return (
        " The other factors stand where the map has most of both, held-out "
        "and known points, as its title says."
    )


def picture_volumes(
    dataset: Dataset,
    volumes: Mapping[str, np.ndarray],
    title: str = "",
    planes: Sequence[Plane] = (),
) -> Plot:
    """Plots log-volumes less their means, as maps on one scale.

    Args:
        dataset: The data.
        volumes: Log-volumes [n] by stage.
        title: The title of the figure.
        planes: The maps, by default all of the dataset.
    """
    centered = {}
    for stage, volume in volumes.items():
        finite = np.ma.masked_invalid(volume)
        deviations = finite - finite.mean()
        centered[title_stage(stage)] = deviations.filled(np.nan)
    numbers = np.stack(list(centered.values()))
    limit = map_plots.find_limit(numbers)

    label = label_volume(dataset.space)
    return picture_maps(
        dataset,
        centered,
        f"{label} less its mean",
        title,
        limits=(-limit, limit),
        planes=planes,
        cmap="RdBu_r",
    )


def label_volume(space: FactorSpace) -> str:
    """Returns the axis label of log-volumes, as `log(volume / px²)`."""
    units = []
    for factor in space:
        if not factor.categorical:
            units.append(factor.unit or factor.name)
    counts = Counter(units)
    powers = []
    for unit, count in counts.items():
        exponent = _POWERS.get(count, f"^{count}")
        powers.append(f"{unit}{exponent}")
    product = "·".join(powers)
    if len(powers) > 1:
        product = f"({product})"
    return f"log(volume / {product})"


def picture_embedding(
    factor: Factor, embedding: EmbeddingAnalysis
) -> dict[str, Plot]:
    """Plots all matrices of an embedding, and profiles if it has any.

    Args:
        factor: The factor.
        embedding: Its matrices and profiles, one for each value.
    """
    title = f"embedding of {factor.name}"
    levels = [factor.describe(value) for value in factor.values()]
    matrices = map_plots.draw_embeddings(
        embedding.matrices,
        levels,
        factor_label=factor.label,
        title=title,
    )
    figures = {"embedding": matrices}
    if embedding.profiles:
        figures["profiles"] = map_plots.draw_profiles(
            embedding.profiles,
            factor=factor,
            title=title,
        )
    return figures
