"""The explorer: outputs of every run at the combination under the pointer.

Runs on the same data, with the same held-out combinations and training
examples, are a *group*: it has true images and predictions without a network.
"""

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.analysis.superposition import superpose
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.datasets.tables import VectorDataset
from tfcomp.datasets.views import MAX_EXPLORED, from_contrast
from tfcomp.evaluation.kept_outputs import read_outputs
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.pictures import label_error
from tfcomp.evaluation.point_scores import score_points
from tfcomp.evaluation.reference_scores import draw_references
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.report.explorer_parts import (
    Data,
    Sprite,
    describe_stage,
    divide,
    round_numbers,
)
from tfcomp.report.page import TEMPLATES, render_template
from tfcomp.report.run_exhibits import rename_runs
from tfcomp.storage.files import write_text

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
    data, sprites = collect(analyses), []
    epochs = [epoch for run in data["runs"] for epoch in run["epochs"]]
    for part in (*data["groups"], *data["runs"], *epochs):
        sprites.append(part["sprite"])
        part["sprite"] = len(sprites) - 1
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return render_template(
        TEMPLATES / "explorer.html",
        sprites=sprites,
        # No name of a factor can end the script.
        data=Markup(text.replace("<", "\\u003c")),
    )


def collect(analyses: Sequence[RunAnalysis]) -> Data:
    """Returns all data of a page on the runs."""
    groups: dict[tuple, Data] = {}
    runs = []
    for analysis in analyses:
        shown = analysis.for_explorer(count_combinations(analyses))
        data, splits = shown.dataset, shown.splits
        points = splits.grid, splits.is_ood, splits.train
        arrays = *points, shown.evaluation.truth
        hashes = [hash(array.tobytes()) for array in arrays]
        key = data.space, data.region.spec, *hashes
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
                "vertical": data.vertical.get(factor.name, 0),
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
            errors[name] = round_numbers(_rate(analysis, drawn))
    return {
        "factors": factors,
        "index": columns,
        "ood": splits.is_ood.astype(int).tolist(),
        "test": splits.points.is_test.astype(int).tolist(),
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
    if analysis.ssim_error is not None:
        labels["ssim_error"] = "1 - SSIM"
        scores["ssim_error"] = analysis.ssim_error
    if analysis.run.reader is not None:
        labels["reader_accuracy"] = "share of factors that the reader finds"
        hits = analysis.run.reader.check(found.images, splits.grid)
        scores["reader_accuracy"] = hits.mean(axis=1)
    return described | {
        "images": images,
        "ranges": list_ranges(found.images) if data.is_pixels else {},
        "scores": [
            {"name": n, "label": labels.get(n, n), "values": round_numbers(v)}
            for n, v in scores.items()
        ],
        "stages": [
            describe_stage(analysis, stage) for stage in analysis.stages
        ],
        "epochs": _list_epochs(analysis),
        **sprite.to_data(),
    }


def _rate(analysis: RunAnalysis, images: np.ndarray) -> np.ndarray:
    truth = analysis.evaluation.truth
    blank = np.broadcast_to(analysis.dataset.reference, truth.shape)
    error = compute_mse_per_image(images, truth)
    return divide(error, compute_mse_per_image(blank, truth))


def list_ranges(images: np.ndarray) -> dict[int, list[float | None]]:
    """Returns the range of each image that leaves 0..1, by its index."""
    flat = images.reshape(len(images), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    leaves = ~((low >= -1 / 255) & (high <= 1 + 1 / 255))
    return {
        int(i): round_numbers(np.array([low[i], high[i]]))
        for i in np.flatnonzero(leaves)
    }


def _list_epochs(analysis: RunAnalysis) -> list[Data]:
    folder, listed = analysis.run.path, []
    kept = read_outputs(folder, analysis.splits.grid) if folder else {}
    for epoch, images in kept.items():
        sprite = Sprite(analysis.dataset.first_row == "top")
        shown = {"epoch": epoch, "output": sprite.add(images)}
        shown["errors"] = round_numbers(_rate(analysis, images))
        listed.append(shown | sprite.to_data())
    return listed
