"""The explorer: outputs of every run at the combination under the pointer.

Runs on the same data, with the same held-out combinations and training
examples, are a *group*: it has true images and predictions without a network.
"""

import dataclasses
import html
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from tfcomp.datasets.solvable import certify_dataset
from tfcomp.datasets.tables import VectorDataset
from tfcomp.datasets.views import MAX_EXPLORED, from_contrast
from tfcomp.figures.image_files import encode, make_sprite, read_outputs
from tfcomp.figures.pictures import label_error
from tfcomp.metrics.references import predict_references
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.scores import compute_error_ratio, divide, score_points
from tfcomp.metrics.superposition import superpose
from tfcomp.report.page import TEMPLATES, render_template
from tfcomp.report.verbalize import rename_runs
from tfcomp.storage.files import write_text

Data = dict[str, Any]

# The most bytes of all images of a page, which PNG compresses to a fifth.
MAX_BYTES = 2**25
# Images of each combination: three of a group (the truth and two predictions
# without a network), and two of a run (output and superposition).
NUM_IMAGES = 5
# Labels of scores that no metric declares.
LABELS = {
    "superposition_r2": "R² of the superposition",
    "ssim_error": "1 - SSIM",
    "reader_accuracy": "share of factors that the reader finds",
}


class Explorer:
    """An explorer, which a notebook shows; `html` is its page.

    Args:
        analyses: The runs that it compares.
    """

    def __init__(self, analyses: Sequence[RunAnalysis]) -> None:
        analyses = rename_runs(analyses)
        names = ", ".join(analysis.name for analysis in analyses)
        self.html = render_template(
            TEMPLATES / "explorer_page.html",
            title=f"Explorer of {names}",
            explorer=Markup(explorer_fragment(analyses)),
        )

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="explorer" '
            'style="width: 100%; height: 860px; border: 0"></iframe>'
        )

    def write(self, path: str | Path) -> Path:
        """Writes the page to a file; returns its path.

        Args:
            path: The file.
        """
        file = Path(path)
        write_text(file, self.html)
        return file


def explorer_fragment(analyses: Sequence[RunAnalysis]) -> str:
    """Returns the explorer as HTML, without the rest of the page.

    Args:
        analyses: The runs that it compares.
    """
    data = collect(analyses)
    parts = [*data["groups"], *data["runs"]]
    for run in data["runs"]:
        parts += run["epochs"]

    # Sprites are elements of the page, which the data name by their number.
    sprites = []
    for number, part in enumerate(parts):
        sprites.append(part["sprite"])
        part["sprite"] = number
    text = json.dumps(
        data,
        allow_nan=False,
        separators=(",", ":"),
    )
    return render_template(
        TEMPLATES / "explorer.html",
        sprites=sprites,
        # A name of a factor with `</script>` must not end the script.
        data=Markup(text.replace("<", "\\u003c")),
    )


def collect(analyses: Sequence[RunAnalysis]) -> Data:
    """Collects the data of a page.

    Args:
        analyses: The runs on the page.

    Returns:
        `groups`, and `runs`, each with the index of its `group`.
    """
    limit = count_combinations(analyses)
    groups: dict[tuple, Data] = {}
    runs = []
    for analysis in analyses:
        explored = analysis.for_explorer(limit)
        dataset = explored.dataset
        key = (
            dataset.space,
            dataset.region.spec,
            hash(explored.splits.grid.tobytes()),
            hash(explored.splits.train.tobytes()),
            hash(explored.evaluation.truth.tobytes()),
        )
        if key not in groups:
            groups[key] = _describe_group(explored)
            # The page says that it shows this number of combinations in part.
            groups[key]["total"] = len(analysis.splits.all)

        run = _describe_run(explored)
        run["name"] = analysis.name
        run["group"] = list(groups).index(key)
        runs.append(run)
    return {"groups": list(groups.values()), "runs": runs}


def count_combinations(analyses: Sequence[RunAnalysis]) -> int:
    """Counts the combinations per run that keep a page small.

    Args:
        analyses: The runs on the page.
    """
    bytes_per_combination = 0
    for analysis in analyses:
        num_images = NUM_IMAGES + analysis.run.config.keep_outputs
        num_bytes = math.prod(analysis.dataset.image_shape)  # a byte a pixel
        bytes_per_combination += num_bytes * num_images
    most = min(MAX_EXPLORED, MAX_BYTES // bytes_per_combination)
    return max(1, most)


def _describe_group(analysis: RunAnalysis) -> Data:
    """Describes what runs on the same data share.

    Args:
        analysis: Any run of the group, at the combinations that are explored.
    """
    dataset = analysis.dataset
    splits = analysis.splits
    factors, index = _describe_factors(analysis)

    # Outputs of an embedding are composed as the additive model composes, so
    # that its prediction would say nothing new.
    names = ["nearest_id"]
    if dataset.is_pixels:
        names.append("additive")
    images = {"truth": dataset.to_pictures(analysis.evaluation.truth)}
    errors = {}
    for name, outputs in predict_references(dataset).items():
        if name not in names:
            continue
        images[name] = dataset.to_pictures(outputs)
        evaluation = dataclasses.replace(analysis.evaluation, images=outputs)
        ratios = compute_error_ratio(dataset, evaluation)
        errors[name] = round_numbers(ratios)

    # A control run is also trained on combinations that count as held out.
    is_control = dataset.region.contains(splits.train).any()
    return {
        "factors": factors,
        "index": index,
        "ood": splits.is_ood.astype(int).tolist(),
        "test": splits.points.is_test.astype(int).tolist(),
        "region": dataset.region.spec,
        "control": bool(is_control),
        "reference": dataset.reference_name,
        "certified": _describe_certificates(analysis),
        "errors": errors,
        **make_sprite(images, dataset.first_row == "top"),
    }


def _describe_certificates(analysis: RunAnalysis) -> Data:
    """Describes at which orders training determines combinations.

    Returns:
        `orders`, the orders that could be certified; and `order`, for each
        combination [n] the largest order that determines it, or 0. It is 0 for
        combinations that are not held out.
    """
    splits = analysis.splits
    largest_order = np.zeros(len(splits.grid), int)
    orders = []
    certificates = certify_dataset(analysis.dataset, splits.grid)
    for order, certificate in certificates.items():  # ascending
        if certificate is not None:
            orders.append(order)
            largest_order[certificate.certified & splits.is_ood] = order
    return {"orders": orders, "order": largest_order.tolist()}


def _describe_factors(
    analysis: RunAnalysis,
) -> tuple[list[Data], list[list[int]]]:
    """Describes the factors and the combinations that are explored.

    Returns:
        A description of each factor, with the levels that are explored; and
        for each factor the place of the level of every combination [n] among
        these.
    """
    dataset = analysis.dataset
    index = dataset.space.to_index(analysis.splits.grid)  # [n, F]
    factors = []
    columns = []
    for factor, column in zip(dataset.space, index.T, strict=True):
        levels, places = np.unique(column, return_inverse=True)
        values = factor.values()[levels]
        description = {
            "name": factor.name,
            "label": factor.label,
            "ordered": not factor.categorical,
            "vertical": dataset.vertical.get(factor.name, 0),
            "values": values.tolist(),
            "levels": list(map(factor.describe, values)),
        }
        columns.append(places.tolist())
        factors.append(description)
    return factors, columns


def _describe_run(analysis: RunAnalysis) -> Data:
    """Describes outputs, scores and stages of one network."""
    dataset = analysis.dataset
    outputs = analysis.evaluation.images
    images = {"output": dataset.to_pictures(outputs)}
    scores = _score_points(analysis)
    run: Data = {"ranges": {}}
    if isinstance(dataset, VectorDataset):
        run["items"] = dataset.find_items(outputs).tolist()
    else:
        superposed, scores["superposition_r2"] = superpose(
            dataset.space.to_index(analysis.splits.grid),
            analysis.bright_outputs,
            analysis.splits.is_ood,
        )
        images["superposition"] = from_contrast(dataset, superposed)
        run["ranges"] = list_ranges(outputs)

    run["scores"] = _describe_scores(analysis, scores)
    run["stages"] = []
    for stage in analysis.stages:
        run["stages"].append(_describe_stage(analysis, stage))
    run["epochs"] = _list_epochs(analysis)
    return run | make_sprite(images, dataset.first_row == "top")


def _describe_scores(
    analysis: RunAnalysis, scores: dict[str, np.ndarray]
) -> list[Data]:
    """Describes scores [n] of all combinations, with their labels."""
    labels = {"relative_mse": label_error(analysis.dataset), **LABELS}
    for metric in list_metrics("image"):
        labels.setdefault(metric.name, metric.axis)
    return [
        {
            "name": name,
            "label": labels.get(name, name),
            "values": round_numbers(values),
        }
        for name, values in scores.items()
    ]


def _score_points(analysis: RunAnalysis) -> dict[str, np.ndarray]:
    """Returns the scores of all combinations, [n] each."""
    splits = analysis.splits
    outputs = analysis.evaluation.images
    scores = {"relative_mse": analysis.error_ratio}
    scores |= score_points(
        analysis.dataset,
        outputs,
        analysis.evaluation.truth,
        splits.grid,
        splits.is_ood,
    )
    del scores["blank_mse"]
    if analysis.ssim_error is not None:
        scores["ssim_error"] = analysis.ssim_error
    reader = analysis.run.reader
    if reader is not None:
        hits = reader.check(outputs, splits.grid)
        scores["reader_accuracy"] = hits.mean(axis=1)
    return scores


def _describe_stage(analysis: RunAnalysis, stage: str) -> Data:
    """Describes maps of units, and the geometry of ordered factors.

    Maps are scaled to 0..1; `ranges` has the ends of each.
    """
    units, maps = analysis.explored_units[stage]  # [k], [k, n]
    maps = np.nan_to_num(maps)
    low = maps.min(1, keepdims=True, initial=np.inf)
    high = maps.max(1, keepdims=True, initial=-np.inf)
    description = {
        "name": stage,
        "units": units.tolist(),
        "ranges": round_numbers(np.hstack([low, high])),
        "maps": pack_bytes(divide(maps - low, high - low), 255),
    }
    if analysis.dataset.space.directions:
        description |= _describe_geometry(analysis, stage)
    return description


def _describe_geometry(analysis: RunAnalysis, stage: str) -> Data:
    """Describes lengths of steps of factors, and cosines between them.

    A step is the move of the activations for one grid step of a factor.
    Lengths are relative to `longest`.
    """
    space = analysis.dataset.space
    steps = np.array([space.factors[i].step for i in space.directions])
    metrics = np.nan_to_num(analysis.metrics[stage])
    metrics = metrics * np.outer(steps, steps)  # [n, F, F], per grid step
    squares = np.diagonal(metrics, axis1=1, axis2=2)
    lengths = np.sqrt(squares.clip(0))  # [n, F]
    longest = float(lengths.max(initial=0.0))

    cosines = []
    for a, b in itertools.combinations(range(len(steps)), 2):
        products = lengths[:, a] * lengths[:, b]
        cosine = divide(metrics[:, a, b], products)
        # An even top: a cosine of 0 is the byte 127.
        cosines.append(pack_bytes((cosine + 1) / 2, 254))
    return {
        "log_volume": round_numbers(analysis.log_volume[stage]),
        "lengths": pack_bytes(lengths / (longest or 1.0), 255),
        "longest": longest,
        "cosines": cosines,
    }


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Finds the images whose pixels leave 0..1, which pictures clip.

    Args:
        images: Outputs, [n, ...].

    Returns:
        The smallest and largest pixel of each such image, by its index.
    """
    pixels = images.reshape(len(images), -1)
    low = pixels.min(axis=1)
    high = pixels.max(axis=1)
    margin = 1 / 255  # a gray level of a picture
    # NaN counts as outside.
    is_outside = ~((low >= -margin) & (high <= 1 + margin))
    ranges = {}
    for row in np.flatnonzero(is_outside).tolist():
        ranges[row] = round_numbers([low[row], high[row]])
    return ranges


def pack_bytes(values: np.ndarray, top: int) -> str:
    """Packs numbers as bytes in base64.

    Args:
        values: Numbers from 0 to 1.
        top: The byte of 1.
    """
    numbers = np.round(np.nan_to_num(values).clip(0, 1) * top)
    return encode(numbers.astype(np.uint8).tobytes())


def round_numbers(values: ArrayLike) -> list:
    """Rounds to four significant digits, for JSON.

    Args:
        values: Numbers, [n] or of more dimensions.

    Returns:
        Lists of the same shape, with None for numbers that are not finite.
    """

    def round_number(value: float) -> float | None:
        """Rounds one number."""
        if not math.isfinite(value):
            return None
        return float(f"{value:.4g}")

    array = np.asarray(values, float)
    round_all = np.vectorize(round_number, otypes=[object])
    return round_all(array).tolist()


def _list_epochs(analysis: RunAnalysis) -> list[Data]:
    """Describes the outputs that the run kept while it was trained."""
    if analysis.run.path is None:
        return []
    outputs = read_outputs(analysis.run.path, analysis.splits.grid)
    is_upright = analysis.dataset.first_row == "top"
    epochs = []
    for epoch, (images, errors) in outputs.items():
        description = make_sprite({"output": images}, is_upright)
        # The numbers of the tiles become the entry `output`.
        description |= description.pop("images")
        description["epoch"] = epoch
        description["errors"] = round_numbers(errors)
        epochs.append(description)
    return epochs
