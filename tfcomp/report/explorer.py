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
from tfcomp.metrics.point_scores import (
    compute_error_ratio,
    divide,
    score_points,
)
from tfcomp.metrics.references import predict_references
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.superposition import superpose
from tfcomp.report.page import TEMPLATES, render_template
from tfcomp.report.verbalize import rename_runs
from tfcomp.storage.files import write_text

Data = dict[str, Any]

# Of all images before they are compressed, to a fifth or less.
MAX_BYTES = 2**25
# Labels of scores that no metric declares.
LABELS = {
    "superposition_r2": "R² of the superposition",
    "ssim_error": "1 - SSIM",
    "reader_accuracy": "share of factors that the reader finds",
}


class Explorer:
    """An explorer, which a notebook shows; `html` is the whole page."""

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
    """Returns HTML for the top of a page."""
    data = collect(analyses)
    parts = [*data["groups"], *data["runs"]]
    for run in data["runs"]:
        parts += run["epochs"]

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
        # No name of a factor can end the script.
        data=Markup(text.replace("<", "\\u003c")),
    )


def collect(analyses: Sequence[RunAnalysis]) -> Data:
    """Returns all data of a page on the runs: `groups`, and `runs`."""
    limit = count_combinations(analyses)
    groups: dict[tuple, Data] = {}
    runs = []
    for analysis in analyses:
        part = analysis.for_explorer(limit)
        data = part.dataset
        key = (
            data.space,
            data.region.spec,
            hash(part.splits.grid.tobytes()),
            hash(part.splits.train.tobytes()),
            hash(part.evaluation.truth.tobytes()),
        )
        if key not in groups:
            groups[key] = _describe_group(part)
            groups[key]["total"] = len(analysis.splits.all)

        run = _describe_run(part)
        run["name"] = analysis.name
        run["group"] = list(groups).index(key)
        runs.append(run)
    return {"groups": list(groups.values()), "runs": runs}


def count_combinations(analyses: Sequence[RunAnalysis]) -> int:
    """Returns the number of combinations per run that keeps a page small."""
    size = 0  # bytes of one combination
    for analysis in analyses:
        num_images = 5 + analysis.run.config.keep_outputs
        size += math.prod(analysis.dataset.image_shape) * num_images
    return max(1, min(MAX_EXPLORED, MAX_BYTES // size))


def _describe_group(analysis: RunAnalysis) -> Data:
    """Describes what runs on the same data share."""
    data = analysis.dataset
    splits = analysis.splits
    factors, index = _describe_factors(analysis)

    # Embeddings are composed as the additive model is.
    names = ["nearest_id"]
    if data.is_pixels:
        names.append("additive")
    images = {"truth": data.to_pictures(analysis.evaluation.truth)}
    errors = {}
    for name, outputs in predict_references(data).items():
        if name not in names:
            continue
        images[name] = data.to_pictures(outputs)
        evaluation = dataclasses.replace(analysis.evaluation, images=outputs)
        ratios = compute_error_ratio(data, evaluation)
        errors[name] = round_numbers(ratios)

    return {
        "factors": factors,
        "index": index,
        "ood": splits.is_ood.astype(int).tolist(),
        "test": splits.points.is_test.astype(int).tolist(),
        "region": data.region.spec,
        "control": bool(data.region.contains(splits.train).any()),
        "reference": data.reference_name,
        "certified": _describe_certificates(analysis),
        "errors": errors,
        **make_sprite(images, data.first_row == "top"),
    }


def _describe_certificates(analysis: RunAnalysis) -> Data:
    """Describes the largest order that determines a combination, or 0."""
    splits = analysis.splits
    order = np.zeros(len(splits.grid), int)
    orders = []
    certificates = certify_dataset(analysis.dataset, splits.grid)
    for number, certificate in certificates.items():
        if certificate is not None:
            orders.append(number)
            order[certificate.certified & splits.is_ood] = number
    return {"orders": orders, "order": order.tolist()}


def _describe_factors(
    analysis: RunAnalysis,
) -> tuple[list[Data], list[list[int]]]:
    """Describes factors, and returns the rows of levels of combinations."""
    data = analysis.dataset
    index = data.space.to_index(analysis.splits.grid)
    factors = []
    columns = []
    for factor, column in zip(data.space, index.T, strict=True):
        levels, rows = np.unique(column, return_inverse=True)
        values = factor.values()[levels]
        description = {
            "name": factor.name,
            "label": factor.label,
            "ordered": not factor.categorical,
            "vertical": data.vertical.get(factor.name, 0),
            "values": values.tolist(),
            "levels": list(map(factor.describe, values)),
        }
        columns.append(rows.tolist())
        factors.append(description)
    return factors, columns


def _describe_run(analysis: RunAnalysis) -> Data:
    """Describes outputs, scores and stages of one network."""
    data = analysis.dataset
    outputs = analysis.evaluation.images
    images = {"output": data.to_pictures(outputs)}
    scores = _score_points(analysis)
    run: Data = {"ranges": {}}
    if isinstance(data, VectorDataset):
        run["items"] = data.find_items(outputs).tolist()
    else:
        superposed, scores["superposition_r2"] = superpose(
            data.space.to_index(analysis.splits.grid),
            analysis.bright_outputs,
            analysis.splits.is_ood,
        )
        images["superposition"] = from_contrast(data, superposed)
        run["ranges"] = list_ranges(outputs)

    labels = {"relative_mse": label_error(data), **LABELS}
    for metric in list_metrics("image"):
        labels.setdefault(metric.name, metric.axis)
    run["scores"] = []
    for name, values in scores.items():
        score = {
            "name": name,
            "label": labels.get(name, name),
            "values": round_numbers(values),
        }
        run["scores"].append(score)
    run["stages"] = []
    for stage in analysis.stages:
        run["stages"].append(_describe_stage(analysis, stage))
    run["epochs"] = _list_epochs(analysis)
    return run | make_sprite(images, data.first_row == "top")


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
    """Describes maps of units, and the geometry of ordered factors."""
    units, maps = analysis.shown_units[stage]
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
    """Describes lengths of steps of factors, and cosines between them."""
    space = analysis.dataset.space
    steps = np.array([space.factors[i].step for i in space.directions])
    metrics = np.nan_to_num(analysis.metrics[stage])
    metrics = metrics * np.outer(steps, steps)
    squares = np.diagonal(metrics, axis1=1, axis2=2)
    lengths = np.sqrt(squares.clip(0))
    longest = float(lengths.max(initial=0.0))

    cosines = []
    for a, b in itertools.combinations(range(len(steps)), 2):
        products = lengths[:, a] * lengths[:, b]
        cosine = divide(metrics[:, a, b], products)
        cosines.append(pack_bytes((cosine + 1) / 2, 254))
    return {
        "log_volume": round_numbers(analysis.log_volume[stage]),
        "lengths": pack_bytes(lengths / (longest or 1.0), 255),
        "longest": longest,
        "cosines": cosines,
    }


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Returns the range of each image that leaves 0..1, by its index."""
    pixels = images.reshape(len(images), -1)
    low = pixels.min(axis=1)
    high = pixels.max(axis=1)
    margin = 1 / 255
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
    """Rounds to four digits, with None for numbers that are not finite."""
    rounded: list[Any] = []
    for value in np.asarray(values, float):
        if np.ndim(value):
            rounded.append(round_numbers(value))
        elif math.isfinite(value):
            rounded.append(float(f"{value:.4g}"))
        else:
            rounded.append(None)
    return rounded


def _list_epochs(analysis: RunAnalysis) -> list[Data]:
    """Describes the outputs that the run kept while it was trained."""
    if analysis.run.path is None:
        return []
    outputs = read_outputs(analysis.run.path, analysis.splits.grid)
    is_upright = analysis.dataset.first_row == "top"
    epochs = []
    for epoch, (images, errors) in outputs.items():
        sprite = make_sprite({"output": images}, is_upright)
        sprite |= sprite.pop("images")
        sprite["epoch"] = epoch
        sprite["errors"] = round_numbers(errors)
        epochs.append(sprite)
    return epochs
