"""What the explorer knows of runs, as plain data for a page.

Numbers of every combination are in the order of the grid. Runs on the same
data, with the same held-out combinations and training examples, share what does
not depend on a network: a *group*.
"""

import hashlib
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.analysis.superposition import superpose
from tfcomp.datasets.dataset import Dataset, undo_brighten
from tfcomp.datasets.explored import MAX_EXPLORED
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.evaluation.kept_outputs import read_outputs
from tfcomp.evaluation.pictures import label_error
from tfcomp.evaluation.point_scores import score_points
from tfcomp.evaluation.reference_scores import draw_references
from tfcomp.evaluation.study import Study
from tfcomp.report.sprites import Sprite, encode
from tfcomp.statistics.measure import list_measures

# Of all images before they are compressed, to a fifth or less.
MAX_BYTES = 2**25
DIGITS = 4
HASH = re.compile("[0-9a-f]{16}")  # what names a trial of a sweep
Data = dict[str, Any]


def collect(studies: Sequence[Study]) -> Data:
    """All that a page shows of the runs."""
    groups: dict[str, Data] = {}
    runs = []
    for name, study in zip(name_runs(studies), studies, strict=True):
        shown = study.explore(count_combinations(studies))
        key = _identify(shown)
        if key not in groups:
            groups[key] = describe_group(shown, len(study.splits.all))
        number = list(groups).index(key)
        runs.append({"name": name, "group": number, **describe_run(shown)})
    return {"groups": list(groups.values()), "runs": runs}


def name_runs(studies: Sequence[Study]) -> list[str]:
    """Names of runs; of trials, which hashes name, the flags that differ.

    As `depth=2 seed=0`.
    """
    flags = [study.run.config.identity() for study in studies]
    keys = {key: {str(other.get(key)) for other in flags} for key in flags[0]}
    names = []
    for study, own in zip(studies, flags, strict=True):
        parts = [f"{k}={own[k]}" for k, found in keys.items() if len(found) > 1]
        is_trial = HASH.fullmatch(study.name) and parts
        names.append(" ".join(parts) if is_trial else study.name)
    return names


def count_combinations(studies: Sequence[Study]) -> int:
    """How many of each run are shown, so that the page stays small."""
    size = 0
    for study in studies:
        kept = study.run.config.keep_outputs
        size += math.prod(study.dataset.image_shape) * (5 + kept)
    return max(1, min(MAX_EXPLORED, MAX_BYTES // size))


def describe_group(study: Study, total: int) -> Data:
    """Factors, combinations, and images that need no network."""
    data, splits = study.dataset, study.splits
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
    images = {"truth": sprite.add(study.evaluation.truth)}
    for name, drawn in draw_references(data).items():
        if name in ("nearest_id", "additive"):
            images[name] = sprite.add(drawn)
            errors[name] = _round(rate(study, drawn))
    return {
        "factors": factors,
        "index": columns,
        "ood": splits.is_ood.astype(int).tolist(),
        "test": splits.is_test.astype(int).tolist(),
        "total": total,
        "region": data.region.spec,
        "reference": data.reference_name,
        "certified": certify(data),
        "images": images,
        "errors": errors,
        **_show(sprite),
    }


def certify(data: Dataset) -> Data:
    """The largest order at which held-out combinations are certified.

    `order` is 0 where it is none; `orders` are those that were computed.
    """
    grid, is_ood = data.splits.grid, data.splits.is_ood
    found = certify_dataset(data, grid)
    orders = [k for k, certificate in found.items() if certificate is not None]
    order = np.zeros(len(grid), int)
    for k in orders:
        order[found[k].certified & is_ood] = k
    return {"orders": orders, "order": order.tolist()}


def describe_run(study: Study) -> Data:
    """Images, scores and stages of a run."""
    data, splits, found = study.dataset, study.splits, study.evaluation
    index = data.space.to_index(splits.grid)
    superposed, r2 = superpose(index, study.bright_outputs, splits.is_ood)
    sprite = Sprite(data.first_row == "top")
    images = {
        "output": sprite.add(found.images),
        "superposition": sprite.add(undo_brighten(data, superposed)),
    }
    scores = {"relative_mse": (label_error(data), rate(study, found.images))}
    each = score_points(
        data, found.images, found.truth, splits.grid, splits.is_ood
    )
    labels = {m.name: m.label for m in list_measures("image")}
    each.pop("blank_mse")
    scores |= {n: (labels.get(n, n), np.asarray(v)) for n, v in each.items()}
    scores["superposition_r2"] = ("R² of the superposition", r2)
    return {
        "images": images,
        "ranges": list_ranges(found.images),
        "scores": [
            {"name": name, "label": label, "values": _round(values)}
            for name, (label, values) in scores.items()
        ],
        "stages": [describe_stage(study, stage) for stage in study.stages],
        "epochs": list_epochs(study),
        **_show(sprite),
    }


def rate(study: Study, images: np.ndarray) -> np.ndarray:
    """The error of images at every combination, in that of the reference."""
    truth = study.evaluation.truth
    blank = np.broadcast_to(study.dataset.reference, truth.shape)
    error = compute_mse_per_image(images, truth)
    return _divide(error, compute_mse_per_image(blank, truth))


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Least and largest value of images that leave 0..1, by their number."""
    flat = images.reshape(len(images), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    leaves = ~((low >= -1 / 255) & (high <= 1 + 1 / 255))
    return {
        int(i): _round(np.array([low[i], high[i]]))
        for i in np.flatnonzero(leaves)
    }


def list_epochs(study: Study) -> list[Data]:
    """What the run drew while it was trained, and its errors then."""
    listed = []
    for epoch, images in read_outputs(study.run, study.splits.grid).items():
        sprite = Sprite(study.dataset.first_row == "top")
        tiles = sprite.add(images)
        errors = _round(rate(study, images))
        listed.append(
            {"epoch": epoch, "output": tiles, "errors": errors, **_show(sprite)}
        )
    return listed


def describe_stage(study: Study, stage: str) -> Data:
    """Metric tensors and units of a stage, in 8 bits."""
    numbers, maps = study.shown_units[stage]
    finite = np.nan_to_num(maps)
    low = finite.min(axis=1, initial=np.inf, keepdims=True)
    high = finite.max(axis=1, initial=-np.inf, keepdims=True)
    described = {
        "name": stage,
        "units": numbers.tolist(),
        "ranges": _round(np.hstack([low, high])),
        "maps": _pack(_divide(finite - low, high - low), 255),
    }
    if study.dataset.space.ordered:
        described |= describe_metrics(study, stage)
    return described


def describe_metrics(study: Study, stage: str) -> Data:
    """Lengths along ordered factors, per level, and cosines between them.

    Lengths are shares of `longest`, 0 to 255; cosines -1 to 1 are 0 to 254.
    Columns of pairs are in the order of `itertools.combinations`.
    """
    space, metrics = study.dataset.space, study.metrics[stage]
    steps = np.array([space.factors[i].step for i in space.ordered])
    metrics = np.nan_to_num(metrics) * steps[:, None] * steps
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2).clip(0))
    pairs = list(itertools.combinations(range(len(steps)), 2))
    cosines = [
        _divide(metrics[:, a, b], lengths[:, a] * lengths[:, b])
        for a, b in pairs
    ]
    longest = float(lengths.max(initial=0.0))
    described = {
        "log_volume": _round(study.log_volume[stage]),
        "lengths": _pack(lengths / (longest or 1.0), 255),
        "cosines": [_pack((c + 1) / 2, 254) for c in cosines],
    }
    return described


def _identify(study: Study) -> str:
    """A hash of what runs on the same data have in common."""
    splits, found = study.splits, hashlib.sha256()
    for array in (
        splits.grid,
        splits.is_ood,
        splits.train,
        study.evaluation.truth,
    ):
        found.update(np.ascontiguousarray(array).tobytes())
    space = study.dataset.space.to_dict()
    return f"{space}{study.dataset.region.spec}{found.hexdigest()}"


def _show(sprite: Sprite) -> Data:
    return {
        "size": sprite.size,
        "columns": sprite.columns,
        "sprite": sprite.to_url(),
    }


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Their ratio; 0 where both are, and infinite where `by` alone is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(values == 0, 0.0, values / by)


def _pack(values: np.ndarray, top: int) -> str:
    """Numbers from 0 to 1 as bytes, in base64."""
    whole = np.round(np.nan_to_num(values).clip(0, 1) * top)
    return encode(whole.astype(np.uint8).tobytes())


def _round(values: np.ndarray) -> list:
    """Numbers as they are printed; None where they are not finite."""
    if np.ndim(values) > 1:
        return [_round(row) for row in values]
    return [
        float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]
