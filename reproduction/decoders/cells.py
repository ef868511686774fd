"""Runs of decoders on splits, judged as claims are.

A **cell** is a decoder on a split: data, region and composition, if it is
known. docs/decoders.md has the rules. R² is about the mean of the images that
are scored.

The decoder that is the composition (`EXACT`) must compose, by the theory, and
the field expects all others to fail. Nothing is expected of decoders that have
it as a special case, nor of occlusions whose objects never meet in training.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from reproduction.decoders.verdicts import (
    MIN_SEEDS,
    Verdict,
    combine,
    judge,
)
from tfcomp.statistics.limits import AT_MOST_ONE
from tfcomp.statistics.seed_statistics import choose_flags, estimate_mean
from tfcomp.tables import Results
from tfcomp.tables.flatten import NO_FLAGS

BOUND = 0.9  # of R², ID and OOD
MIN_FITTED = 0.5  # share of the runs
MIN_EQUAL = 10  # numbers that copies of a run share
FRESH = 200  # the first seed of version 2 of the comparison
SHAPES = "square,ellipse,heart"  # of sprites, before there were others
# Composition of the data to the decoder that is it.
EXACT = {"sum": "additive", "product": "product", "occlusion": "occlusion"}
# Those that have every other composition as a special case, and attention.
WIDER = (
    "low_rank_product occlusion slots attention low_rank hard_rendering acting"
).split()
SUPPORTS = ("orthogonal", "diagonal:.4")
# The splits on which something is expected of decoders.
EXPECTED = [
    f"composed {composition} {support}"
    for composition, support in product(EXACT, SUPPORTS)
    if (composition, support) != ("occlusion", "orthogonal")
]
# Flags that decide the images of a split, or the reference of their error.
IMAGE_FLAGS = (
    "grid_size num_positions sigma polarity num_train num_bumps data_hash "
    "digit_source digit_class digit_classes digit_index num_angles"
).split()
VERDICTS = {Verdict.REPRODUCED: "composes", Verdict.REFUTED: "fails"}
NUMBERS = {
    "id_relative_mse": "id/relative_mse",
    "ood_relative_mse": "ood/relative_mse",
    "ood_position_accuracy": "ood/position_accuracy",
    "additive_predictor": "references/additive/ood",
    "nearest_memory": "references/nearest_id/ood",
    "weights": "train/weights",
    "seconds": "train/seconds",
}
Row = dict[str, Any]


def read_table(results: Results) -> pd.DataFrame:
    """Returns a row for each run: split, flags, and scores as `ood/mse`."""
    # R² of runs that lack it follows from their error and from the error of
    # the mean image, which other runs on the same images recorded.
    scores = results.scores.filter(regex="^(?!layers/).*/")
    scores = scores.reset_index(drop=True)
    table = pd.concat([results.runs, scores], axis=1)
    table.insert(0, "split", table.apply(describe_split, axis=1))
    images = [table[name] for name in ("split", *IMAGE_FLAGS)]
    for subset in ("id", "ood"):
        names = [f"{subset}/relative_mse", f"r2/{subset}"]
        table[names] = table.reindex(columns=names)
        error, r2 = (table[name] for name in names)
        mean = (error / (1 - r2)).groupby(images).transform("median")
        table[names[1]] = r2.fillna(1 - error / mean)
    return table


def describe_split(run: pd.Series) -> str:
    """Returns data and region, as `sprites montero:range`."""
    data, region = run["dataset"], run["region"]
    shapes = run.get("sprite_shapes", SHAPES)
    if data == "sprites" and shapes != SHAPES:
        data += f":{shapes}"
    if data != "composed":
        return f"{data} {region}"
    _, _, kind = region.partition("wiedemer:")
    return f"{data} {run['composition']} {kind.partition(':x_')[0]}"


def estimate_r2(
    runs: pd.DataFrame,
) -> tuple[pd.DataFrame, Verdict, tuple[float, float, float]]:
    """Returns the runs that count, the verdict on them, and their R².

    It is the mean with its interval; NaN if a run that counts lacks it.
    """
    fitted = runs[runs["r2/id"] > BOUND]
    pairs = zip(fitted["seed"], fitted["r2/ood"], strict=True)
    values = {seed: r2 if r2 == r2 else None for seed, r2 in pairs}
    found = estimate_mean(values, AT_MOST_ONE)
    numbers = (found.mean, found.low, found.high) if found else [None] * 3
    mean, low, high = (math.nan if n is None else n for n in numbers)
    verdict = judge(found, BOUND)
    if is_open(runs, fitted):
        verdict = Verdict.UNDECIDED
    return fitted, verdict, (mean, low, high)


def is_open(runs: pd.DataFrame, fitted: pd.DataFrame) -> bool:
    """Tells if fewer than half of the runs fit, or two are copies."""
    numbers = fitted.filter(regex="^(?!train/).+/").to_numpy(float)
    numbers = numbers[:, ~np.isnan(numbers).any(axis=0)]
    is_copied = numbers.shape[1] >= MIN_EQUAL and (
        len(np.unique(numbers, axis=0)) < len(numbers)
    )
    return is_copied or len(fitted) < MIN_FITTED * len(runs)


def average(runs: pd.DataFrame, path: str) -> float:
    """Returns the mean of a number over runs that have it; NaN without any."""
    return float(runs[path].mean()) if path in runs else math.nan


def list_cells(table: pd.DataFrame) -> list[Row]:
    """Returns the rows of decoders.csv, by names of splits and decoders."""
    is_sprites = table["dataset"] == "sprites"
    is_fresh = is_sprites & (table["seed"] >= FRESH)
    table = table[~is_fresh | is_fresh.equals(is_sprites)]
    firsts = table.drop_duplicates("setting")
    flags = [n for n in map(str, firsts) if n not in NO_FLAGS and "/" not in n]
    images = firsts[["region", *IMAGE_FLAGS]].groupby(firsts["split"])
    usual = {split: here.mode().iloc[0] for split, here in images}
    numbers = table.filter(regex="/").join(table[["seed", "setting"]])
    groups = numbers.sort_values("seed").groupby("setting")
    rows = []
    for key, alike in firsts.groupby(["split", "model"]):
        split, decoder = map(str, key)
        # Without flags that only some of the settings have.
        shared: Any = alike[flags].dropna(axis=1).to_dict("records")
        names = choose_flags(shared)
        for run in alike.to_dict("records"):
            odd = [n for n, value in usual[split].items() if run[n] != value]
            # As `sprites montero:range (grid_size 64)`, if there are others.
            shown = dict.fromkeys([*odd, *names])
            words = ", ".join(f"{n} {run[n]}" for n in shown)
            label = f"{split} ({words})" if words else split
            runs = groups.get_group(run["setting"])
            rows.append(_judge_cell(label, decoder, runs))
    return rows


def _judge_cell(split: str, decoder: str, runs: pd.DataFrame) -> Row:
    fitted, verdict, (mean, low, high) = estimate_r2(runs)
    counted = runs if fitted.empty else fitted
    numbers = {name: average(counted, path) for name, path in NUMBERS.items()}
    is_interval = len(fitted) >= MIN_SEEDS
    row: Row = {
        "split": split,
        "decoder": decoder,
        "seeds": len(runs),
        "fitted": len(fitted),
        "verdict": VERDICTS.get(verdict, "undecided"),
        "expected": find_expected(split, decoder),
        "ood_r2": mean,
        "ood_r2_low": low if is_interval else math.nan,
        "ood_r2_high": high if is_interval else math.nan,
        "id_r2_worst": fitted["r2/id"].min(),
        **numbers,
    }
    if fitted.empty:
        row["verdict"] = "not fitted"
    for name in ("additive_predictor", "nearest_memory"):
        ratio = row["ood_relative_mse"] / (numbers[name] or math.nan)
        row[f"over_{name.partition('_')[0]}"] = ratio
    return row


def find_expected(split: str, decoder: str) -> str | None:
    """Returns `composes` or `fails` where the composition is known."""
    if split not in EXPECTED:
        return None
    if decoder == EXACT[split.split()[1]]:
        return "composes"
    return None if decoder in WIDER else "fails"


def judge_expectations(cells: Sequence[Row]) -> list[list[str]]:
    """Judges both statements on every split, and on all in the last row."""
    composes, fails = VERDICTS.values()
    judged: dict[tuple[str, str], list[Verdict]] = {
        place: [] for place in product(EXPECTED, (composes, fails))
    }
    for cell in cells:
        verdict, expected = cell["verdict"], cell["expected"]
        is_other = verdict in (composes, fails)
        found = Verdict.REFUTED if is_other else Verdict.UNDECIDED
        if verdict == expected:
            found = Verdict.REPRODUCED
        # A decoder that does not fit does not count as a failure.
        if expected and (expected, verdict) != (fails, "not fitted"):
            judged[cell["split"], expected].append(found)
    columns = [
        [combine(judged[split, expected]) for split in EXPECTED]
        for expected in (composes, fails)
    ]
    every = ["all", *(combine(column) for column in columns)]
    return [*map(list, zip(EXPECTED, *columns, strict=True)), every]
