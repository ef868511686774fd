"""Scores embeddings and encoders: the functions of `tfcomp`."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset, build_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.notes import name_hidden
from tfcomp.datasets.regions import Region
from tfcomp.datasets.splits import choose_rows
from tfcomp.datasets.tables import VectorDataset, make_table_dataset
from tfcomp.metrics.references import fit_effects, make_design
from tfcomp.models.adapters import COMPARED, check_outputs, wrap_model
from tfcomp.models.loading import IMAGE, Encoder, LoadedRun
from tfcomp.report.model_report import (
    ModelReport,
    describe_points,
    make_config,
    print_split,
)
from tfcomp.representations import scores
from tfcomp.representations.disentanglement import measure_codes

LATENTS = "latents"
MAX_CODES = 64  # latents whose disentanglement is scored
MAX_FITTED = 2**14  # rows that a composition is fitted to
BATCH = 128  # images of one call
Listed = str | Callable[..., Any] | Sequence[int] | np.ndarray
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
    predicted by a sum of parts that is fitted to (at most 16,384) combinations
    outside of the region.

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
        table = FactorTable(None, table)
    rows = table.rows
    layers = scores.read_layers(embeddings, len(rows))
    config, listed = make_config(table, region, name, eval_points)
    # Pictures and geometry are of means over the rows of a combination.
    order = np.argsort(rows, kind="stable")
    means = {}
    for layer, values in layers.items():
        means[layer] = _average(values[order], table.counts)

    def look_up(factors: np.ndarray) -> Arrays:
        places = table.find_points(factors)
        arrays = {}
        for layer, values in means.items():
            arrays[layer] = values[places].astype(np.float32)
            arrays[layer][places < 0] = np.nan
        return arrays

    pictures = table.draw if table.image_shape[0] else None
    points = table.points[rows]
    return _report(
        config,
        table,
        listed,
        points,
        layers,
        look_up,
        pictures,
    )


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
    samples: int = 1,
) -> ModelReport:
    """Scores an encoder's representations of a table's images, layer by layer.

    Its layers and `latents` are scored as by `evaluate_embeddings`, and latents
    of at most 64 units by DCI, MIG, SAP and FactorVAE's score, beside their
    chance level (`tables["codes"]`). With a decoder, the result is an
    autoencoder: its `scores` are of reconstructed images, and layers of both
    parts are stages.

    Args:
        encoder: A Keras model, a module of PyTorch, or a function, from images
            [n, H, W, C] (a module gets [n, C, H, W]) to latents [n, d]. Of
            several outputs by name `latents`, `image_embeds`, `pooler_output`
            or `last_hidden_state` is taken, else the last one.
        table: Images and factors.
        region: The combinations that are held out, as in `tfcomp.evaluate`.
        layers: Names of layers of the encoder, by default those at its top; or
            of entries of a function's dictionary.
        decoder: A model from latents to images, of the same kinds.
        name: Name of the model in reports.
        eval_points: The largest number of combinations, sampled at random,
            half of them held out; 0 scores all.
        codes: False leaves the scores of disentanglement out.
        samples: How often an encoder that samples is called: embeddings are
            means over the calls.

    Raises:
        ValueError: If a model cannot be called so, or has no such layer, or for
            a decoder of a table with several images of a combination.
        ConfigError: For an impossible region or name.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    if decoder is not None and table.is_repeated:
        rule = "must have one image of each combination for a decoder"
        raise ValueError(f"table {rule}, got {table!r}")
    config, listed = make_config(table, region, name, eval_points)
    images = make_table_dataset(config, table, listed)
    part = Encoder(encoder, layers, LATENTS)
    notes = _check_encoder(part, table, samples)
    images = dataclasses.replace(images, notes=(*images.notes, *notes))
    encode = _join_parts(part, decoder, samples)

    def read(factors: np.ndarray) -> Arrays:
        """Returns layers of all images of combinations."""
        return encode(table.draw_all(factors.astype(np.float32)))

    def look_up(factors: np.ndarray) -> Arrays:
        """Returns mean layers of combinations; NaN where images are missing."""
        rows = table.find_points(factors)
        is_absent = rows[:, None] < 0
        counts = table.counts[rows]
        arrays = read(table.points[rows])
        means = {}
        for key, values in arrays.items():
            mean = _average(values, counts)
            means[key] = np.where(is_absent, np.nan, mean)
        return means

    points = images.splits.scored.factors
    arrays = _read_in_batches(read, points)
    counts = table.counts[table.find_points(points)]
    points = np.repeat(points, counts, axis=0)
    arrays = scores.read_layers(arrays, len(points))
    if decoder is not None:
        result = _finish(
            config,
            images,
            points,
            arrays,
            look_up,
        )
    else:
        result = _report(
            config,
            table,
            listed,
            points,
            arrays,
            look_up,
            table.draw,
            notes,
        )
    latents = arrays[LATENTS]
    if codes and latents.shape[1] <= MAX_CODES:
        rows = measure_codes(table.space, points, latents)
        result.run.tables["codes"] = rows
    return result


def _check_encoder(
    encode: Encoder,
    table: FactorTable,
    samples: int,
) -> list[str]:
    """Says which output was taken, and whether the encoder samples."""
    images = table.draw_all(table.points[:COMPARED])
    first = encode(images)[LATENTS]
    second = encode(images)[LATENTS]
    difference = np.abs(first - second).max()
    rounding = 1e-3 * np.abs(first).max()

    notes = []
    if encode.taken:
        notes.append(f"latents are the encoder's output {encode.taken}")
    if samples > 1:
        notes.append(f"embeddings are means of {samples} calls")
    elif difference > rounding:
        notes.append("embeddings differ from call to call: samples=10 averages")
    return notes


def _join_parts(encode: Encoder, decoder: Any, samples: int) -> Lookup:
    """Makes a function from images to the layers of one or both parts.

    Args:
        encode: The encoder.
        decoder: A model from latents to images, or None.
        samples: How often the encoder is called.
    """
    decode = None
    if decoder is not None:
        decode = Encoder(decoder, (), IMAGE)

    def read(images: np.ndarray) -> Arrays:
        """Averages the layers of images over the calls of the encoder."""
        arrays = encode(images)
        for _ in range(1, samples):
            for key, values in encode(images).items():
                arrays[key] += values
        for key in arrays:
            arrays[key] /= samples

        if decode is not None:
            for key, values in decode(arrays[LATENTS]).items():
                if key in arrays:
                    key = f"{key}_decoder"
                arrays[key] = values
        return arrays

    return read


def _read_in_batches(read: Lookup, points: np.ndarray) -> Arrays:
    """Reads the layers of many combinations, without the images."""
    num_parts = math.ceil(len(points) / BATCH)
    parts = np.array_split(points, num_parts)
    batches = list(map(read, parts))
    arrays = {}
    for key in batches[0]:
        if key != IMAGE:
            arrays[key] = np.concatenate([batch[key] for batch in batches])
    return arrays


def _average(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Averages the rows of each combination, which follow each other."""
    sums = np.add.reduceat(values, np.cumsum(counts) - counts)
    return sums / counts[:, None].astype(sums.dtype)


def _report(
    config: RunConfig,
    table: FactorTable,
    region: Region | None,
    points: np.ndarray,
    layers: Arrays,
    look_up: Lookup,
    pictures: Callable | None,
    notes: Sequence[str] = (),
) -> ModelReport:
    """Scores sums of parts that are fitted to the last layer."""
    last = list(layers)[-1]
    units = layers[last].shape[1]
    space = table.space

    def render(factors: Any) -> np.ndarray:
        vectors = look_up(np.asarray(factors))
        return vectors[last].reshape(-1, 1, units, 1)

    dataset = build_dataset(
        config,
        space,
        region,
        cells=table.points,
        kind=VectorDataset,
        pictures=pictures,
        render=render,
        image_shape=(1, units, 1),
        has_background=False,
        has_position=False,
        first_row="top",
        notes=(*table.notes, *notes),
        size_flag="eval_points",
    )

    rows = np.flatnonzero(~dataset.region.contains(points))
    rows = rows[choose_rows(len(rows), MAX_FITTED)]
    index = space.to_index(points[rows])
    effects = fit_effects(index, space.shape, layers[last][rows])

    def call(factors: np.ndarray) -> Arrays:
        index = space.to_index(np.asarray(factors))
        design = make_design(index, space.shape)
        composed = (design @ effects).astype(np.float32)
        return look_up(factors) | {IMAGE: composed}

    return _finish(
        config,
        dataset,
        points,
        layers,
        call,
    )


def _finish(
    config: RunConfig,
    dataset: Dataset,
    points: np.ndarray,
    layers: Arrays,
    call: Lookup,
) -> ModelReport:
    """Scores all layers of a model, whose stages they are."""
    hidden = name_hidden(dataset)
    if hidden:
        note = (
            f"accuracy_ood is without {hidden}: probes cannot learn values "
            "that training lacks"
        )
        dataset = dataclasses.replace(dataset, notes=(*dataset.notes, note))
    print_split(dataset)
    is_ood = dataset.region.contains(points)
    tables = scores.measure_layers(dataset.space, points, is_ood, layers)
    model = wrap_model(call, dataset, list(layers), "values")
    if dataset.is_pixels:
        dataset, outputs = check_outputs(dataset, model, 1)
    else:
        values = call(dataset.splits.grid)[IMAGE]
        outputs = values.reshape(-1, *dataset.image_shape)
    text = f"Layers: {', '.join(layers)}\n{describe_points(dataset)}"
    run = LoadedRun(
        path=None,
        config=config,
        dataset=dataset,
        model=model,
        metrics={},
        description=text,
        tables=tables,
    )
    return ModelReport(run, outputs=outputs)
