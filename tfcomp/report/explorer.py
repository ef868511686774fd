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
        """Writes the page to a file; returns its path."""
        write_text(Path(path), self.html)
        return Path(path)


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
        arrays = (part.splits.grid, part.splits.train, part.evaluation.truth)
        hashes = [hash(array.tobytes()) for array in arrays]
        key = (data.space, data.region.spec, *hashes)
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

    # The largest order at which a combination is determined, or 0.
    order = np.zeros(len(splits.grid), int)
    orders = []
    for k, certificate in certify_dataset(data, splits.grid).items():
        if certificate is not None:
            orders.append(k)
            order[certificate.certified & splits.is_ood] = k

    # Embeddings are composed as the additive model is.
    names = ("nearest_id", "additive") if data.is_pixels else ("nearest_id",)
    images = {"truth": data.to_pictures(analysis.evaluation.truth)}
    errors = {}
    for name, outputs in predict_references(data).items():
        if name in names:
            images[name] = data.to_pictures(outputs)
            evaluation = dataclasses.replace(
                analysis.evaluation, images=outputs
            )
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
        "certified": {"orders": orders, "order": order.tolist()},
        "errors": errors,
        **make_sprite(images, data.first_row == "top"),
    }


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
        columns.append(rows.tolist())
        factors.append(
            {
                "name": factor.name,
                "label": factor.label,
                "ordered": not factor.categorical,
                "vertical": data.vertical.get(factor.name, 0),
                "values": values.tolist(),
                "levels": [factor.describe(value) for value in values],
            }
        )
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

    labels = {metric.name: metric.axis for metric in list_metrics("image")}
    labels |= {"relative_mse": label_error(data), **LABELS}
    run["scores"] = [
        {
            "name": name,
            "label": labels.get(name, name),
            "values": round_numbers(values),
        }
        for name, values in scores.items()
    ]
    run["stages"] = [
        _describe_stage(analysis, stage) for stage in analysis.stages
    ]
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
    """Describes maps of units, and lengths per level with their cosines."""
    units, maps = analysis.shown_units[stage]
    maps = np.nan_to_num(maps)
    low = maps.min(1, keepdims=True, initial=np.inf)
    high = maps.max(1, keepdims=True, initial=-np.inf)
    text = {
        "name": stage,
        "units": units.tolist(),
        "ranges": round_numbers(np.hstack([low, high])),
        "maps": pack_bytes(divide(maps - low, high - low), 255),
    }
    space = analysis.dataset.space
    if not space.directions:
        return text

    steps = np.array([space.factors[i].step for i in space.directions])
    metrics = np.nan_to_num(analysis.metrics[stage]) * np.outer(steps, steps)
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2).clip(0))
    longest = float(lengths.max(initial=0.0))
    cosines = []
    for a, b in itertools.combinations(range(len(steps)), 2):
        cosine = divide(metrics[:, a, b], lengths[:, a] * lengths[:, b])
        cosines.append(pack_bytes((cosine + 1) / 2, 254))
    return text | {
        "log_volume": round_numbers(analysis.log_volume[stage]),
        "lengths": pack_bytes(lengths / (longest or 1.0), 255),
        "longest": longest,
        "cosines": cosines,
    }


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Returns the range of each image that leaves 0..1, by its index."""
    pixels = images.reshape(len(images), -1)
    ranges = np.stack([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
    is_inside = (ranges[:, 0] >= -1 / 255) & (ranges[:, 1] <= 1 + 1 / 255)
    rows = np.flatnonzero(~is_inside)
    return dict(zip(rows.tolist(), round_numbers(ranges[rows]), strict=True))


def pack_bytes(values: np.ndarray, top: int) -> str:
    """Returns numbers from 0 to 1, as bytes from 0 to `top`, in base64."""
    numbers = np.round(np.nan_to_num(values).clip(0, 1) * top)
    return encode(numbers.astype(np.uint8).tobytes())


def round_numbers(values: np.ndarray) -> list:
    """Rounds to four digits, with None for numbers that are not finite."""
    if np.ndim(values) > 1:
        return [round_numbers(row) for row in values]
    return [
        float(f"{v:.4g}") if math.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]


def _list_epochs(analysis: RunAnalysis) -> list[Data]:
    """Describes the outputs that the run kept while it was trained."""
    if analysis.run.path is None:
        return []
    outputs = read_outputs(analysis.run.path, analysis.splits.grid)
    epochs = []
    for epoch, (images, errors) in outputs.items():
        is_upright = analysis.dataset.first_row == "top"
        sprite = make_sprite({"output": images}, is_upright)
        sprite |= sprite.pop("images")
        sprite |= {"epoch": epoch, "errors": round_numbers(errors)}
        epochs.append(sprite)
    return epochs
