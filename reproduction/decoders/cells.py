"""R² of decoders on held-out combinations, and who composes.

R² is about the mean of the held-out images. A run counts if it fits, with an
R² above .9 on the training combinations. A decoder composes on a split if the
lower end of its 95 % interval lies above every predictor without a network.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from reproduction.claims.judge import MIN_SEEDS, Interval, compare, estimate
from tfcomp.statistics.limits import AT_MOST_ONE

if TYPE_CHECKING:
    from tfcomp.tables import Results

MIN_ID_R2 = 0.9
MIN_FITTED = 0.5  # share of the runs
# Squares and ellipses look the same after a turn: on other shapes held-out
# images are also in training.
DISTINCT = "heart,triangle,l"
UNDETERMINED = "sprites, undetermined"
# Flags that decide the images of a split.
IMAGE_FLAGS = ["grid_size", "num_positions", "sigma", "data_hash"]
COLUMNS = [
    "run",
    "setting",
    "seed",
    "model",
    "dataset",
    "composition",
    "sprite_shapes",
    "region",
    "train_all",
    *IMAGE_FLAGS,
]
SCORES = "^(id|ood|r2|references|certificate)/"


def read_table(results: Results) -> pd.DataFrame:
    """Makes a row for each run, with its split, family and scores.

    Networks that were trained on all combinations and sprites that look like
    others are left out.

    Args:
        results: The runs, as `read_finished` reads them.
    """
    scores = results.scores.filter(regex=SCORES)
    runs = results.runs.filter(COLUMNS)  # copies of all flags take seconds
    table = runs.join(scores, on="run")
    for name in ("id/relative_mse", "ood/relative_mse", "r2/id", "r2/ood"):
        if name not in table:
            table[name] = math.nan
    is_copied = table["dataset"] == "sprites"
    if "sprite_shapes" in table:
        is_copied &= table["sprite_shapes"] != DISTINCT
    is_control = table["train_all"].astype(bool)
    is_kept = ~is_copied & ~is_control
    table = table[is_kept].copy()
    if table.empty:
        return table

    is_composed = table["dataset"] == "composed"
    composition = table["composition"]
    data = table["dataset"].where(~is_composed, composition)
    region = table["region"]
    table["split"] = data + " " + region
    table["family"] = data
    certified = "certificate/1/certified"
    if certified in table:
        is_sprite = data == "sprites"
        is_open = is_sprite & (table[certified] < 1)
        table.loc[is_open, "family"] = UNDETERMINED

    names = ["split", *IMAGE_FLAGS]
    images = [table[name] for name in names]
    for subset in ("id", "ood"):
        # Runs that lack R² have it from their error and from the error of the
        # mean image, which other runs on the same images recorded.
        error = table[f"{subset}/relative_mse"]
        r2 = table[f"r2/{subset}"]
        mean_errors = error / (1 - r2)
        groups = mean_errors.groupby(images)
        mean_error = groups.transform("median")
        missing = 1 - error / mean_error
        table[f"r2/{subset}"] = r2.fillna(missing)
    table["mean_error"] = mean_error
    return table


def judge_splits(table: pd.DataFrame) -> pd.DataFrame:
    """Judges each decoder on each split; a row for each of them.

    Args:
        table: The result of `read_table`.
    """
    rows = []
    keys = ["family", "split", *IMAGE_FLAGS]
    groups = table.groupby(keys, dropna=False)
    for (family, split, *_), runs in groups:
        predictors = read_predictors(runs)
        bound = predictors.max()
        for decoder, decoder_runs in runs.groupby("model"):
            setting_runs = keep_setting(decoder_runs)
            fitted = select_fitted(setting_runs)
            number = estimate(fitted["r2/ood"], "mean", AT_MOST_ONE)
            answer = decide(
                number,
                bound,
                tried=len(setting_runs),
                fitted=len(fitted),
            )
            row = {
                "family": family,
                "split": split,
                "decoder": decoder,
                "runs": len(setting_runs),
                "fitted": len(fitted),
                "r2": number.mean,
                "low": number.low,
                "high": number.high,
                "predictor": predictors.idxmax(),
                "predictor_r2": bound,
                "composes": answer,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def keep_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Keeps the setting with the most runs, in the order of seeds."""
    settings = runs["setting"].mode()
    is_kept = runs["setting"] == settings.iloc[0]
    kept_runs = runs[is_kept]
    return kept_runs.sort_values("seed")


def select_fitted(runs: pd.DataFrame) -> pd.DataFrame:
    """Keeps the runs that fit, by seed."""
    is_fitted = runs["r2/id"] > MIN_ID_R2
    fitted = runs[is_fitted]
    return fitted.set_index("seed")


def read_predictors(runs: pd.DataFrame) -> pd.Series:
    """Reads R² of predictors without a network, by name.

    The mean of the held-out images, which has 0, is one of them.
    """
    errors = runs.filter(regex="^references/[^/]*/ood$")
    mean_errors = errors.mean()
    mean_error = runs["mean_error"].mean()
    r2 = 1 - mean_errors / mean_error
    parts = r2.index.str.split("/")
    names = parts.str[1]
    predictors = r2.set_axis(names).dropna()
    predictors["held_out_mean"] = 0.0
    return predictors


def decide(
    number: Interval,
    bound: float,
    tried: int,
    fitted: int,
) -> str:
    """Answers if a decoder composes: yes, no, open, or not fitted.

    Args:
        number: Its R² over seeds.
        bound: The largest R² of predictors without a network.
        tried: The number of runs.
        fitted: The number of them that fit.
    """
    if fitted == 0:
        return "not fitted"
    if fitted < MIN_FITTED * tried:
        return "open"
    return compare(number, f"> {bound}")


def average_families(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Averages R² over the splits of a family, with an interval over seeds.

    Args:
        table: The result of `read_table`.
        rows: The result of `judge_splits`.

    Returns:
        A row for each family and decoder. Its R² is NaN if fewer than three
        seeds fit on all splits of the family.
    """
    families = []
    groups = rows.groupby(["family", "decoder"])
    for (family, decoder), splits in groups:
        is_family = table["family"] == family
        is_decoder = table["model"] == decoder
        every_run = table[is_family & is_decoder]
        columns = {}
        for split, runs in every_run.groupby("split"):
            fitted = select_fitted(keep_setting(runs))
            # Splits were run with different seeds: the first ones are paired.
            r2 = fitted["r2/ood"]
            columns[split] = r2.reset_index(drop=True)
        means = pd.DataFrame(columns).mean(axis=1, skipna=False)
        means = means.dropna()
        number = estimate(means, "mean", AT_MOST_ONE)
        if number.n < MIN_SEEDS:
            number = Interval()
        is_composing = splits["composes"] == "yes"
        row = {
            "family": family,
            "decoder": decoder,
            "r2": number.mean,
            "low": number.low,
            "high": number.high,
            "predictor_r2": splits["predictor_r2"].mean(),
            "composing": is_composing.sum(),
            "splits": len(splits),
        }
        families.append(row)
    return pd.DataFrame(families)
