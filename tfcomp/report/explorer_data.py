"""Data of the explorer: runs as plain numbers and sprites for a page.

Numbers of every combination are in the order of the grid. Runs on the same
data, with the same held-out combinations and training examples, are a *group*,
which has the true images and the predictions without a network.
"""

import hashlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.analysis.superposition import superpose
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.embeddings import VectorDataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.datasets.views import MAX_EXPLORED, from_contrast
from tfcomp.evaluation.kept_outputs import read_outputs
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.pictures import label_error
from tfcomp.evaluation.point_scores import score_points
from tfcomp.evaluation.reference_scores import draw_references
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.report.page import encode
from tfcomp.report.sprites import Sprite

# Of all images before they are compressed, to a fifth or less.
MAX_BYTES = 2**25
Data = dict[str, Any]


def collect(analyses: Sequence[RunAnalysis]) -> Data:
    """Returns all data of a page on the runs."""
    groups: dict[str, Data] = {}
    runs = []
    for analysis in analyses:
        shown = analysis.for_explorer(count_combinations(analyses))
        key = _identify(shown)
        if key not in groups:
            groups[key] = _describe_group(shown, len(analysis.splits.all))
        number = list(groups).index(key)
        runs.append(
            {"name": analysis.name, "group": number, **_describe_run(shown)}
        )
    return {"groups": list(groups.values()), "runs": runs}


def count_combinations(analyses: Sequence[RunAnalysis]) -> int:
    """Returns the number of combinations per run that keeps a page small."""
    size = sum(
        math.prod(s.dataset.image_shape) * (5 + s.run.config.keep_outputs)
        for s in analyses
    )
    return max(1, min(MAX_EXPLORED, MAX_BYTES // size))


def _describe_group(analysis: RunAnalysis, total: int) -> Data:
    data, splits = analysis.dataset, analysis.splits
    index = data.space.to_index(splits.grid)
    factors, columns = [], []
    for factor, column in zip(data.space, index.T, strict=True):
        levels, rows = np.unique(column, return_inverse=True)
        values = factor.values()[levels]
        columns.append(rows.tolist())
        factors.append(
            {
                "name": factor.name,
                "label": factor.label,
                "ordered": not factor.categorical,
                "values": values.tolist(),
                "levels": [factor.describe(value) for value in values],
            }
        )
    sprite, errors = Sprite(data.first_row == "top"), {}
    images = {"truth": sprite.add(data.to_pictures(analysis.evaluation.truth))}
    for name, drawn in draw_references(data).items():
        # Embeddings are composed as the additive model is.
        if name == "nearest_id" or (name == "additive" and data.is_pixels):
            images[name] = sprite.add(data.to_pictures(drawn))
            errors[name] = _round(_rate(analysis, drawn))
    return {
        "factors": factors,
        "index": columns,
        "ood": splits.is_ood.astype(int).tolist(),
        "test": splits.is_test.astype(int).tolist(),
        "total": total,
        "region": data.region.spec,
        "reference": data.reference_name,
        "certified": _certify(data),
        "images": images,
        "errors": errors,
        **sprite.to_data(),
    }


def _certify(data: Dataset) -> Data:
    """Returns the largest order that determines a combination, 0 for none."""
    grid, is_ood = data.splits.grid, data.splits.is_ood
    found = certify_dataset(data, grid)
    known = {k: certificate for k, certificate in found.items() if certificate}
    order = np.zeros(len(grid), int)
    for k, certificate in known.items():
        order[certificate.certified & is_ood] = k
    return {"orders": list(known), "order": order.tolist()}


def _describe_run(analysis: RunAnalysis) -> Data:
    data, splits, found = analysis.dataset, analysis.splits, analysis.evaluation
    index = data.space.to_index(splits.grid)
    sprite = Sprite(data.first_row == "top")
    images = {"output": sprite.add(data.to_pictures(found.images))}
    pair = found.images, found.truth
    each = score_points(data, *pair, splits.grid, splits.is_ood)
    each.pop("blank_mse")
    labels = {m.name: m.axis for m in list_metrics("image")}
    labels["relative_mse"] = label_error(data)
    labels["superposition_r2"] = "R² of the superposition"
    scores = {"relative_mse": _rate(analysis, found.images)} | each
    described: Data = {}
    if isinstance(data, VectorDataset):
        described["items"] = data.find_items(found.images).tolist()
    else:
        known = analysis.bright_outputs, splits.is_ood
        superposed, scores["superposition_r2"] = superpose(index, *known)
        shown = from_contrast(data, superposed)
        images["superposition"] = sprite.add(shown)
    if analysis.run.reader is not None:
        labels["reader_accuracy"] = "share of factors that the reader finds"
        hits = analysis.run.reader.check(found.images, splits.grid)
        scores["reader_accuracy"] = hits.mean(axis=1)
    return described | {
        "images": images,
        "ranges": list_ranges(found.images) if data.is_pixels else {},
        "scores": [
            {"name": n, "label": labels.get(n, n), "values": _round(values)}
            for n, values in scores.items()
        ],
        "stages": [
            _describe_stage(analysis, stage) for stage in analysis.stages
        ],
        "epochs": _list_epochs(analysis),
        **sprite.to_data(),
    }


def _rate(analysis: RunAnalysis, images: np.ndarray) -> np.ndarray:
    """Divides the error of images by the reference's at every combination."""
    truth = analysis.evaluation.truth
    blank = np.broadcast_to(analysis.dataset.reference, truth.shape)
    error = compute_mse_per_image(images, truth)
    return _divide(error, compute_mse_per_image(blank, truth))


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Returns the range of each image that leaves 0..1, by its index."""
    flat = images.reshape(len(images), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    leaves = ~((low >= -1 / 255) & (high <= 1 + 1 / 255))
    return {
        int(i): _round(np.array([low[i], high[i]]))
        for i in np.flatnonzero(leaves)
    }


def _list_epochs(analysis: RunAnalysis) -> list[Data]:
    listed = []
    for epoch, images in read_outputs(
        analysis.run, analysis.splits.grid
    ).items():
        sprite = Sprite(analysis.dataset.first_row == "top")
        shown = {"epoch": epoch, "output": sprite.add(images)}
        shown["errors"] = _round(_rate(analysis, images))
        listed.append(shown | sprite.to_data())
    return listed


def _describe_stage(analysis: RunAnalysis, stage: str) -> Data:
    numbers, maps = analysis.shown_units[stage]
    finite = np.nan_to_num(maps)
    low = finite.min(axis=1, initial=np.inf, keepdims=True)
    high = finite.max(axis=1, initial=-np.inf, keepdims=True)
    described = {
        "name": stage,
        "units": numbers.tolist(),
        "ranges": _round(np.hstack([low, high])),
        "maps": _pack(_divide(finite - low, high - low), 255),
    }
    if analysis.dataset.space.ordered:
        described |= _describe_metrics(analysis, stage)
    return described


def _describe_metrics(analysis: RunAnalysis, stage: str) -> Data:
    """Describes lengths per level along ordered factors, and their cosines.

    Lengths are shares of `longest`, 0 to 255; cosines -1 to 1 are 0 to 254.
    Columns of pairs are in the order of `itertools.combinations`.
    """
    space, metrics = analysis.dataset.space, analysis.metrics[stage]
    steps = np.array([space.factors[i].step for i in space.ordered])
    metrics = np.nan_to_num(metrics) * steps[:, None] * steps
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2).clip(0))
    cosines = [
        _divide(metrics[:, a, b], lengths[:, a] * lengths[:, b])
        for a, b in itertools.combinations(range(len(steps)), 2)
    ]
    longest = float(lengths.max(initial=0.0))
    return {
        "log_volume": _round(analysis.log_volume[stage]),
        "lengths": _pack(lengths / (longest or 1.0), 255),
        "longest": longest,
        "cosines": [_pack((c + 1) / 2, 254) for c in cosines],
    }


def _identify(analysis: RunAnalysis) -> str:
    """Hashes the points, splits and true images of a run."""
    splits, data, found = analysis.splits, analysis.dataset, hashlib.sha256()
    truth = analysis.evaluation.truth
    for array in (splits.grid, splits.is_ood, splits.train, truth):
        found.update(array.tobytes())
    return f"{data.space.to_dict()}{data.region.spec}{found.hexdigest()}"


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divides values; 0 / 0 is 0, and another value over 0 is infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(values == 0, 0.0, values / by)


def _pack(values: np.ndarray, top: int) -> str:
    """Packs numbers from 0 to 1 into bytes, in base64."""
    whole = np.round(np.nan_to_num(values).clip(0, 1) * top)
    return encode(whole.astype(np.uint8).tobytes())


def _round(values: np.ndarray) -> list:
    """Rounds to four digits, with None for numbers that are not finite."""
    if np.ndim(values) > 1:
        return [_round(row) for row in values]
    return [
        float(f"{v:.4g}") if math.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]
