"""Scores embeddings and encoders: the functions of `tfcomp`.

result = tfcomp.evaluate_embeddings({"block_3": a, "block_6": b}, table, "x:2")
print(result.tables["layers"])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.embedding_files import make_table
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.regions import Region
from tfcomp.datasets.tables import make_table_dataset
from tfcomp.evaluation import representations
from tfcomp.evaluation.adapters import IMAGE, check_outputs, wrap_model
from tfcomp.evaluation.encoders import Activate, open_encoder, run_in_batches
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.report.model_report import ModelReport
from tfcomp.report.models import make_config

LATENTS = "latents"
MAX_CODES = 64  # latents whose disentanglement is scored
Listed = str | Sequence[int] | np.ndarray
Arrays = dict[str, np.ndarray]
Lookup = Callable[[np.ndarray], Arrays]


def evaluate_embeddings(
    embeddings: Any | Mapping[str, Any],
    table: FactorTable | pd.DataFrame,
    region: Listed = "",
    *,
    name: str = "embeddings",
    eval_points: int = 4096,
) -> ModelReport:
    """Scores embeddings of combinations as sums of parts of their factors.

    `tables` of the result has `layers`, `parts` (by factor) and `pairs` (of
    factors). Its `scores` rate the composition of the last layer: embeddings
    predicted by a sum of parts that is fitted to the combinations outside of
    the region.

    Args:
        embeddings: An array [n, ...], or several by the names of layers, in the
            order of the data flow.
        table: A row for each embedding: a `FactorTable`, which may have images
            (to show), or a DataFrame with a column for each factor.
        region: The combinations that are held out, as in `tfcomp.evaluate`.
        name: Name of the embeddings in reports.
        eval_points: The largest number of combinations that geometry, probes
            and pictures use; `tables` use all.

    Raises:
        ValueError: If an embedding is missing or not finite, or the table
            breaks a rule.
        ConfigError: For an impossible region or name.
    """
    if not isinstance(table, FactorTable):
        table = make_table(table)
    rows = table.number_rows()
    layers = representations.read_layers(embeddings, len(rows))
    _check_names(layers)
    config, listed = make_config(table, region, name, eval_points)
    points, order = table.points[rows], np.argsort(rows, kind="stable")

    def look_up(factors: np.ndarray) -> Arrays:
        chosen = table.find_points(factors)
        return {
            n: _average(values, order, table.counts, chosen)
            for n, values in layers.items()
        }

    pictures = table.draw if table.has_images else None
    return _report(config, table, listed, points, layers, look_up, pictures)


def evaluate_encoder(
    encoder: Any,
    table: FactorTable,
    region: Listed = "",
    *,
    layers: Sequence[str] = (),
    decoder: Any = None,
    name: str = "encoder",
    eval_points: int = 4096,
    codes: bool = True,
) -> ModelReport:
    """Scores what an encoder makes of a table's images, layer by layer.

    Its layers and `latents` are scored as by `evaluate_embeddings`, and latents
    of at most 64 units by DCI, MIG, SAP and FactorVAE's score
    (`tables["codes"]`). With a decoder, the result is an autoencoder: its
    `scores` are of reconstructed images, and layers of both parts are stages.

    Args:
        encoder: A Keras model, a module of PyTorch, or a function, from images
            [n, H, W, C] (a module gets [n, C, H, W]) to latents [n, d]. A
            function may return a dictionary of layers, latents last.
        table: Images and factors.
        region: The combinations that are held out, as in `tfcomp.evaluate`.
        layers: Names of layers of the encoder; by default those at its top.
        decoder: A model from latents to images, of the same kinds.
        name: Name of the model in reports.
        eval_points: The largest number of combinations, sampled at random,
            half of them held out; 0 scores all.
        codes: False leaves the scores of disentanglement out.

    Raises:
        ValueError: If a model cannot be called so, or has no such layer.
        ConfigError: For an impossible region or name.
    """
    config, listed = make_config(table, region, name, eval_points)
    images = make_table_dataset(config, table, listed)
    encode = open_encoder(encoder, layers, LATENTS)
    decode = decoder and open_encoder(decoder, (), IMAGE)

    def look_up(factors: np.ndarray) -> Arrays:
        return _encode(table, encode, decode, factors)

    points = images.splits.scored.factors
    found = run_in_batches(look_up, points)
    found.pop(IMAGE, None)
    found = representations.read_layers(found, len(points))
    _check_names(found)
    latents = found[LATENTS]
    if decode:
        result = _report_images(config, images, points, found, look_up)
    else:
        result = _report(
            config, table, listed, points, found, look_up, table.draw
        )
    if codes and latents.shape[1] <= MAX_CODES:
        rows = representations.measure_codes(table.space, points, latents)
        result.run.tables["codes"] = rows
    return result


def _encode(
    table: FactorTable,
    encode: Activate,
    decode: Activate | None,
    factors: np.ndarray,
) -> Arrays:
    """Returns layers at points; NaN for combinations that do not exist."""
    exists = table.find_points(factors) >= 0
    known = np.where(exists[:, None], factors, table.points[:1])
    found = encode(table.draw(known))
    if decode:
        for name, value in decode(found[LATENTS]).items():
            found[f"{name}_decoder" if name in found else name] = value
    for name, value in found.items():
        found[name] = np.array(value, np.float32).reshape(len(factors), -1)
        found[name][~exists] = np.nan
    return found


def _report(
    config: RunConfig,
    table: FactorTable,
    region: Region | None,
    points: np.ndarray,
    layers: Arrays,
    look_up: Lookup,
    pictures: Callable | None,
) -> ModelReport:
    """Reports on the composition of the last layer, whose rows are points."""
    *_, last = layers
    units = layers[last].shape[1]

    def render(factors: Any) -> np.ndarray:
        values = look_up(np.asarray(factors))[last]
        return values.astype(np.float32).reshape(-1, 1, units, 1)

    dataset = representations.make_vector_dataset(
        config, table, render, units, region, pictures
    )
    compose = representations.make_composition(dataset, points, layers[last])

    def call(factors: np.ndarray) -> Arrays:
        return look_up(factors) | {IMAGE: compose(factors)}

    outputs = compose(dataset.splits.grid).reshape(-1, 1, units, 1)
    return _finish(config, dataset, points, layers, call, outputs)


def _report_images(
    config: RunConfig,
    dataset: Dataset,
    points: np.ndarray,
    layers: Arrays,
    look_up: Lookup,
) -> ModelReport:
    return _finish(config, dataset, points, layers, look_up, None)


def _finish(
    config: RunConfig,
    dataset: Dataset,
    points: np.ndarray,
    layers: Arrays,
    call: Lookup,
    outputs: np.ndarray | None,
) -> ModelReport:
    representations.say_memory(layers, dataset.space)
    is_ood = dataset.region.contains(points)
    tables = representations.measure_layers(
        dataset.space, points, is_ood, layers
    )
    model = wrap_model(call, dataset, list(layers), "values")
    if outputs is None:
        dataset, outputs = check_outputs(dataset, model, 1)
    text = (
        f"Layers: {', '.join(layers)}\nRegion: {dataset.region.spec}\n"
        f"Points: {len(points):,} of {len(dataset.splits.all):,}\n"
        + "".join(f"Note: {note}\n" for note in dataset.notes)
    )
    run = LoadedRun(None, config, dataset, model, {}, text, tables=tables)
    return ModelReport(run, outputs=outputs)


def _average(
    values: np.ndarray,
    order: np.ndarray,
    counts: np.ndarray,
    points: np.ndarray,
) -> np.ndarray:
    """Returns means over the rows of points, NaN where these are -1.

    The order sorts rows by their points, which have some counts.
    """
    starts = np.cumsum(counts) - counts
    means = np.zeros((len(points), values.shape[1]), np.float32)
    for number in range(counts[points].max(initial=0)):
        rows = np.flatnonzero((counts[points] > number) & (points >= 0))
        chosen = order[starts[points[rows]] + number]
        means[rows] += values[chosen] / counts[points[rows], None]
    means[points < 0] = np.nan
    return means


def _check_names(layers: Mapping[str, np.ndarray]) -> None:
    for name in layers:
        if name == IMAGE or "/" in name or not name:
            raise ValueError(
                f"names of layers must be words other than {IMAGE}, without /, "
                f"got {name!r}"
            )
