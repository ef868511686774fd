"""Held-out images of a split: the truth, and below it what decoders draw.

Of every decoder the first seed of its latest look, with its R^2, in folders of
runs or published. Held-out combinations are drawn at random, the same ones each
time; half of them are certified where training determines only some.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import LOCATION_FLAGS
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import choose_rows
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.storage import published_folder
from tfcomp.storage.files import write_bytes
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE, MODEL_FILE
from tfcomp.studies.claims.evidence import Run
from tfcomp.studies.decoders import decoder_table
from tfcomp.studies.decoders.split_facts import get_r2

if TYPE_CHECKING:
    from tfcomp.evaluation.loading import LoadedRun

FOLDER = "sheets"
COLUMNS = 8


@dataclass(frozen=True)
class Network:
    """A run whose network is here, and what loads it."""

    run: Run
    load: Callable[[], LoadedRun]


def link(text: str, split: str, output: Path) -> str:
    """Markdown that leads from a text to the sheet of a split, if it is there.

    The output is the folder of the tables.
    """
    name = f"{FOLDER}/{name_sheet(split)}"
    return f"[{text}]({name})" if (output / name).exists() else text


def name_sheet(split: str) -> str:
    """The file of a split, as `sprites_montero_range.png`."""
    return (
        re.sub(r"[^a-z\d.-]+", "_", decoder_table.shorten_split(split)) + ".png"
    )


def write_sheets(runs: Sequence[Run], output: Path) -> list[Path]:
    """Draws the sheets of all splits of which there are networks."""
    from tfcomp.figures.exhibits import figure_to_png
    from tfcomp.figures.image_rows import draw_rows

    splits: dict[str, list[Network]] = {}
    for network in find_networks(runs):
        splits.setdefault(decoder_table.describe_split(network.run), []).append(
            network
        )
    written = []
    for split, found in splits.items():
        path = output / FOLDER / name_sheet(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows, titles = collect_images(choose_networks(found))
        figure = draw_rows(rows, column_titles=titles)
        write_bytes(path, figure_to_png(figure, num_colors=64, dpi=60))
        written.append(path)
    return written


def find_networks(runs: Sequence[Run]) -> list[Network]:
    """Networks in folders of runs, then published ones of the same data.

    Raises RunError if a published model is damaged.
    """
    from tfcomp.evaluation.loading import load_run
    from tfcomp.evaluation.published_models import (
        load_published_run,
        parse_published_flags,
    )

    networks = [
        Network(run, functools.partial(load_run, run.path))
        for run in runs
        if (run.path / MODEL_FILE).exists()
    ]
    try:
        source = published_folder.find_source()
    except RunError:
        return networks  # installed without a clone
    shown = {_describe_data(run.flags) for run in runs}
    for model in published_folder.list_published(source):
        contents = published_folder.read_model(source, model.name)
        flags = parse_published_flags(contents[FLAGS_FILE], model.name)
        metrics = published_folder.parse_metrics(
            contents[METRICS_FILE], METRICS_FILE
        )
        run = Run(Path(source, model.name), flags.to_flags(), metrics)
        load = functools.partial(load_published_run, model.name, source)
        if _describe_data(run.flags) in shown:
            networks.append(Network(run, load))
    return networks


def _describe_data(flags: Mapping[str, Any]) -> tuple[Any, ...]:
    names = [setting.name for setting in fields(DataConfig)]
    return tuple(flags[name] for name in names if name not in LOCATION_FLAGS)


def choose_networks(networks: Sequence[Network]) -> list[Network]:
    """Of every decoder one, the best first; their images have one size."""
    ordered = sorted(
        networks, key=lambda n: (-decoder_table.count_looks(n.run), n.run.seed)
    )
    size = ordered[0].run.flags["grid_size"]
    chosen: dict[str, Network] = {}
    for network in ordered:
        if network.run.flags["grid_size"] == size:
            chosen.setdefault(network.run.flags["model"], network)
    return sorted(chosen.values(), key=_get_r2, reverse=True)


def collect_images(
    networks: Sequence[Network],
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The truth and what each one draws, [n, H, W, C], and what columns are."""
    rows: dict[str, np.ndarray] = {}
    for network in networks:
        loaded = network.load()
        if not rows:
            points, titles = choose_points(loaded.dataset)
            rows["truth"] = loaded.dataset.render_array(points)
        name = f"{network.run.flags['model']} {_get_r2(network):.2f}"
        rows[name] = np.asarray(loaded.model(points), np.float32)
    return rows, titles


def choose_points(dataset: Dataset) -> tuple[np.ndarray, list[str]]:
    """Held-out combinations [n, F], and whether they are certified."""
    every = dataset.splits.all
    held_out = every.factors[every.is_ood]
    found = certify_dataset(dataset, held_out)[1]
    marks = found.certified if found else np.zeros(len(held_out), bool)
    kinds = {
        name: held_out[chosen]
        for name, chosen in (("certified", marks), ("other", ~marks))
        if chosen.any()
    }
    parts, titles = [], []
    for name, points in kinds.items():
        rows = choose_rows(len(points), COLUMNS // len(kinds))
        parts.append(points[rows])
        titles += [name] * len(rows)
    return np.concatenate(parts), titles


def _get_r2(network: Network) -> float:
    value = get_r2(network.run, "ood")
    return -math.inf if value is None else value
