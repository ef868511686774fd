"""Held-out images of a split: the truth, and below it what decoders draw.

A sheet is made of the runs whose networks are here, of every decoder the first
seed of its latest look, with the R^2 of this run. A network is in the folder of
its run, or it is a published one of the same settings and seed. Held-out
combinations are drawn at random, the same ones each time; where training
determines only some, half of them are of these.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.config.errors import RunError
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import choose_rows
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.storage.files import write_bytes
from tfcomp.storage.published_folder import (
    find_source,
    list_published,
    read_model,
)
from tfcomp.storage.run_folder import FLAGS_FILE, MODEL_FILE
from tfcomp.studies.claims.evidence import UNIMPORTANT, Run
from tfcomp.studies.decoders.decoder_table import (
    count_looks,
    describe_split,
)
from tfcomp.studies.decoders.split_facts import get_r2

if TYPE_CHECKING:
    from tfcomp.evaluation.loading import LoadedRun

FOLDER = "sheets"
COLUMNS = 8
Networks = Mapping[Path, "Callable[[], LoadedRun]"]


def link(text: str, split: str, output: Path) -> str:
    """Markdown that leads from a text to the sheet of a split, if it is there.

    Args:
        text: What is shown.
        split: As `describe_split` has it.
        output: The folder of the tables.
    """
    name = f"{FOLDER}/{name_sheet(split)}"
    return f"[{text}]({name})" if (output / name).exists() else text


def name_sheet(split: str) -> str:
    """The file of a split, as `sprites_montero_range.png`."""
    region, _, images = split.partition("&not:")
    words = region + " completed" * bool(images)
    return re.sub(r"[^a-z\d.-]+", "_", words) + ".png"


def write_sheets(runs: Sequence[Run], output: Path) -> list[Path]:
    """Draws the sheets of all splits of which there are networks."""
    networks = find_networks(runs)
    splits: dict[str, list[Run]] = {}
    for run in runs:
        if run.path in networks:
            splits.setdefault(describe_split(run), []).append(run)
    written = []
    for split, found in splits.items():
        path = output / FOLDER / name_sheet(split)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, draw_sheet(choose_runs(found), networks))
        written.append(path)
    return written


def find_networks(runs: Sequence[Run]) -> Networks:
    """What loads the network of a run, by its path, of those that have one.

    Raises:
        RunError: If a published model is damaged.
    """
    from tfcomp.evaluation.loading import load_run
    from tfcomp.evaluation.published_models import load_published_run

    published = _list_published()
    networks: dict[Path, Callable[[], LoadedRun]] = {}
    for run in runs:
        if (run.path / MODEL_FILE).exists():
            networks[run.path] = functools.partial(load_run, run.path)
        elif name := published.get(_freeze(run.flags)):
            networks[run.path] = functools.partial(load_published_run, name)
    return networks


def _list_published() -> dict[frozenset[Any], str]:
    # The names of published models by their settings and seeds.
    from tfcomp.evaluation.published_models import parse_published_flags

    try:
        source = find_source()
    except RunError:
        return {}  # installed without a clone
    found = {}
    for model in list_published(source):
        content = read_model(source, model.name)[FLAGS_FILE]
        flags = parse_published_flags(content, model.name).to_flags()
        found[_freeze(flags)] = model.name
    return found


def _freeze(flags: Mapping[str, Any]) -> frozenset[Any]:
    # Settings and seed, without what makes no difference.
    kept = {k: v for k, v in flags.items() if k not in UNIMPORTANT - {"seed"}}
    return frozenset((name, str(value)) for name, value in kept.items())


def choose_runs(runs: Sequence[Run]) -> list[Run]:
    """Of every decoder one run; those with the highest R^2 come first.

    All have images of the same size.
    """
    ordered = sorted(runs, key=lambda run: (-count_looks(run), run.seed))
    chosen: dict[str, Run] = {}
    for run in ordered:
        if run.flags["grid_size"] == ordered[0].flags["grid_size"]:
            chosen.setdefault(run.flags["model"], run)
    return sorted(chosen.values(), key=_get_r2, reverse=True)


def draw_sheet(runs: Sequence[Run], networks: Networks) -> bytes:
    """Rows of images, a PNG file."""
    from tfcomp.figures.exhibits import figure_to_png
    from tfcomp.figures.image_rows import draw_rows

    rows, titles = collect_images(runs, networks)
    figure = draw_rows(rows, column_titles=titles)
    return figure_to_png(figure, num_colors=64, dpi=60)


def collect_images(
    runs: Sequence[Run], networks: Networks
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The truth and what each run draws, [n, H, W, C], and what columns are."""
    rows: dict[str, np.ndarray] = {}
    for run in runs:
        loaded = networks[run.path]()
        if not rows:
            points, titles = choose_points(loaded.dataset)
            rows["truth"] = loaded.dataset.render_array(points)
        name = f"{run.flags['model']} {_get_r2(run):.2f}"
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


def _get_r2(run: Run) -> float:
    value = get_r2(run, "ood")
    return -math.inf if value is None else value
