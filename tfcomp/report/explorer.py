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
from tfcomp.figures.exhibits import make_sprite, pack_bytes, round_numbers
from tfcomp.figures.kept_outputs import read_outputs
from tfcomp.figures.pictures import label_error
from tfcomp.metrics.point_scores import (
    compute_error_ratio,
    divide,
    score_points,
)
from tfcomp.metrics.reference_scores import draw_references
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.superposition import superpose
from tfcomp.report.page import TEMPLATES, render_template
from tfcomp.report.run_exhibits import rename_runs
from tfcomp.storage.files import write_text

Data = dict[str, Any]

# Of all images before they are compressed, to a fifth or less.
MAX_BYTES = 2**25


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
    epochs = [epoch for run in data["runs"] for epoch in run["epochs"]]
    parts = [*data["groups"], *data["runs"], *epochs]
    sprites = [part["sprite"] for part in parts]
    for number, part in enumerate(parts):
        part["sprite"] = number
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return render_template(
        TEMPLATES / "explorer.html",
        sprites=sprites,
        # No name of a factor can end the script.
        data=Markup(text.replace("<", "\\u003c")),
    )


def collect(analyses: Sequence[RunAnalysis]) -> Data:
    """Returns all data of a page on the runs."""
    groups, runs = dict[tuple, Data](), []
    for analysis in analyses:
        shown = analysis.for_explorer(count_combinations(analyses))
        data, splits = shown.dataset, shown.splits
        truth = shown.evaluation.truth
        arrays = splits.grid, splits.is_ood, splits.train, truth
        hashes = [hash(array.tobytes()) for array in arrays]
        key = data.space, data.region.spec, *hashes
        if key not in groups:
            groups[key] = _describe_group(shown, len(analysis.splits.all))
        place = {"name": analysis.name, "group": list(groups).index(key)}
        runs.append(place | _describe_run(shown))
    return {"groups": list(groups.values()), "runs": runs}


def count_combinations(analyses: Sequence[RunAnalysis]) -> int:
    """Returns the number of combinations per run that keeps a page small."""
    size = sum(
        math.prod(s.dataset.image_shape) * (5 + s.run.config.keep_outputs)
        for s in analyses
    )
    return max(1, min(MAX_EXPLORED, MAX_BYTES // size))


def _describe_group(analysis: RunAnalysis, total: int) -> Data:
    data, splits, factors, columns = analysis.dataset, analysis.splits, [], []
    index = data.space.to_index(splits.grid)
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
    found = certify_dataset(data, splits.grid).items()
    certified = {k: c.certified & splits.is_ood for k, c in found if c}
    order = np.zeros(len(index), int)  # the largest that determines, or 0
    for k, is_certified in certified.items():
        order[is_certified] = k
    # Embeddings are composed as the additive model is.
    shown = ("nearest_id", "additive") if data.is_pixels else ("nearest_id",)
    drawn = {n: v for n, v in draw_references(data).items() if n in shown}
    images = {"truth": analysis.evaluation.truth, **drawn}
    images = {name: data.to_pictures(each) for name, each in images.items()}
    errors = {n: round_numbers(_rate(analysis, v)) for n, v in drawn.items()}
    return {
        "factors": factors,
        "index": columns,
        "ood": splits.is_ood.astype(int).tolist(),
        "test": splits.points.is_test.astype(int).tolist(),
        "total": total,
        "region": data.region.spec,
        "control": bool(data.region.contains(splits.train).any()),
        "reference": data.reference_name,
        "certified": {"orders": list(certified), "order": order.tolist()},
        "errors": errors,
        **make_sprite(images, data.first_row == "top"),
    }


def _describe_run(analysis: RunAnalysis) -> Data:
    data, splits, found = analysis.dataset, analysis.splits, analysis.evaluation
    images = {"output": data.to_pictures(found.images)}
    pair = found.images, found.truth
    each = score_points(data, *pair, splits.grid, splits.is_ood)
    each.pop("blank_mse")
    labels = {m.name: m.axis for m in list_metrics("image")} | {
        "relative_mse": label_error(data),
        "superposition_r2": "R² of the superposition",
        "ssim_error": "1 - SSIM",
        "reader_accuracy": "share of factors that the reader finds",
    }
    scores = {"relative_mse": _rate(analysis, found.images), **each}
    described = {}
    if isinstance(data, VectorDataset):
        described["items"] = data.find_items(found.images).tolist()
    else:
        index = data.space.to_index(splits.grid)
        known = analysis.bright_outputs, splits.is_ood
        superposed, scores["superposition_r2"] = superpose(index, *known)
        images["superposition"] = from_contrast(data, superposed)
    if analysis.ssim_error is not None:
        scores["ssim_error"] = analysis.ssim_error
    if analysis.run.reader is not None:
        hits = analysis.run.reader.check(found.images, splits.grid)
        scores["reader_accuracy"] = hits.mean(axis=1)
    return described | {
        "ranges": list_ranges(found.images) if data.is_pixels else {},
        "scores": [
            {"name": n, "label": labels.get(n, n), "values": round_numbers(v)}
            for n, v in scores.items()
        ],
        "stages": [_describe_stage(analysis, s) for s in analysis.stages],
        "epochs": _list_epochs(analysis),
        **make_sprite(images, data.first_row == "top"),
    }


def _describe_stage(analysis: RunAnalysis, stage: str) -> Data:
    """Describes maps of units, and lengths per level with their cosines."""
    numbers, maps = analysis.shown_units[stage]
    finite, space = np.nan_to_num(maps), analysis.dataset.space
    low = finite.min(1, keepdims=True, initial=np.inf)
    high = finite.max(1, keepdims=True, initial=-np.inf)
    described = {
        "name": stage,
        "units": numbers.tolist(),
        "ranges": round_numbers(np.hstack([low, high])),
        "maps": pack_bytes(divide(finite - low, high - low), 255),
    }
    if not space.ordered:
        return described
    steps = np.array([space.factors[i].step for i in space.ordered])
    metrics = np.nan_to_num(analysis.metrics[stage]) * steps[:, None] * steps
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2).clip(0))
    cosines = [
        divide(metrics[:, a, b], lengths[:, a] * lengths[:, b])
        for a, b in itertools.combinations(range(len(steps)), 2)
    ]
    longest = float(lengths.max(initial=0.0))
    return described | {
        "log_volume": round_numbers(analysis.log_volume[stage]),
        "lengths": pack_bytes(lengths / (longest or 1.0), 255),
        "longest": longest,
        "cosines": [pack_bytes((c + 1) / 2, 254) for c in cosines],
    }


def _rate(analysis: RunAnalysis, images: np.ndarray) -> np.ndarray:
    found = dataclasses.replace(analysis.evaluation, images=images)
    return compute_error_ratio(analysis.dataset, found)


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Returns the range of each image that leaves 0..1, by its index."""
    flat = images.reshape(len(images), -1)
    ends = np.stack([flat.min(axis=1), flat.max(axis=1)], axis=1)
    inside = (ends[:, 0] >= -1 / 255) & (ends[:, 1] <= 1 + 1 / 255)
    rows = np.flatnonzero(~inside)
    return dict(zip(rows.tolist(), round_numbers(ends[rows]), strict=True))


def _list_epochs(analysis: RunAnalysis) -> list[Data]:
    folder, listed = analysis.run.path, []
    kept = read_outputs(folder, analysis.splits.grid) if folder else {}
    for epoch, (images, errors) in kept.items():
        first_row = analysis.dataset.first_row
        sprite = make_sprite({"output": images}, first_row == "top")
        described = {"epoch": epoch, **sprite.pop("images"), **sprite}
        listed.append(described | {"errors": round_numbers(errors)})
    return listed
