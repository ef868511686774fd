"""R² of decoders on held-out combinations, and who composes.

R² is about the mean of the held-out images. A run counts if it fits, with an
R² above .9 on the training combinations. A decoder composes on a split if the
lower end of its 95 % interval lies above every predictor without a network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from reproduction.claims.judge import MIN_SEEDS, Interval, Row, estimate
from tfcomp.statistics.limits import AT_MOST_ONE

if TYPE_CHECKING:
    from tfcomp.tables import Results

MIN_ID_R2 = 0.9
# Squares and ellipses look the same after a turn: on other shapes held-out
# images are also in training.
DISTINCT = "heart,triangle,l"
UNDETERMINED = "sprites, undetermined"
# Flags that decide the images of a split.
IMAGE_FLAGS = ["grid_size", "num_positions", "sigma", "data_hash"]
# Of eighty flags: groups of a wide table take several times as long.
FLAGS = [
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
CERTIFIED = "certificate/1/certified"
COLUMNS = [
    "id/relative_mse",
    "ood/relative_mse",
    "r2/id",
    "r2/ood",
    CERTIFIED,
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
    # Runs of other data lack some columns.
    runs = results.runs.reindex(columns=FLAGS)
    table = runs.join(scores, on="run")
    columns = table.columns.union(COLUMNS, sort=False)
    table = table.reindex(columns=columns)
    is_sprite = table["dataset"] == "sprites"
    is_distinct = table["sprite_shapes"] == DISTINCT
    is_control = table["train_all"].astype(bool)
    is_copied = is_sprite & ~is_distinct
    is_kept = ~is_copied & ~is_control
    table = table[is_kept].copy()

    is_composed = table["dataset"] == "composed"
    composition = table["composition"]
    data = table["dataset"].where(~is_composed, composition)
    region = table["region"]
    table["split"] = data + " " + region
    is_open = (data == "sprites") & (table[CERTIFIED] < 1)
    table["family"] = data.mask(is_open, UNDETERMINED)

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
    """Judges each decoder on each split: yes, no, open, or not fitted.

    Args:
        table: The result of `read_table`.

    Returns:
        A row for each decoder and split; its `values` are R² of fitted runs.
    """
    rows = []
    keys = ["family", "split", *IMAGE_FLAGS]
    groups = table.groupby(keys, dropna=False)
    for (family, split, *_), runs in groups:
        predictors = read_predictors(runs)
        bound = predictors.max()
        for decoder, decoder_runs in runs.groupby("model"):
            setting_runs = keep_setting(decoder_runs)
            id_r2 = setting_runs["r2/id"]
            is_fitted = id_r2 > MIN_ID_R2
            fitted = setting_runs[is_fitted]
            judged = Row(
                part=str(split),
                quantity="R²",
                values=fitted.set_index("seed")["r2/ood"],
                bound=f"> {bound}",
                tried=len(setting_runs),
                limits=AT_MOST_ONE,
            )
            answer = judged.holds
            if fitted.empty:
                answer = "not fitted"
            row = {
                "family": family,
                "split": split,
                "decoder": decoder,
                "runs": len(setting_runs),
                "fitted": len(fitted),
                "r2": judged.number.mean,
                "low": judged.number.low,
                "high": judged.number.high,
                "predictor": predictors.idxmax(),
                "predictor_r2": bound,
                "composes": answer,
                "values": judged.values,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def keep_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Keeps the setting with the most runs, in the order of seeds."""
    settings = runs["setting"].mode()
    is_kept = runs["setting"] == settings.iloc[0]
    kept_runs = runs[is_kept]
    return kept_runs.sort_values("seed")


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


def average_families(rows: pd.DataFrame) -> pd.DataFrame:
    """Averages R² over the splits of a family, with an interval over seeds.

    Args:
        rows: The result of `judge_splits`.

    Returns:
        A row for each family and decoder. Its R² is NaN if fewer than three
        seeds fit on all splits of the family.
    """
    families = []
    groups = rows.groupby(["family", "decoder"])
    for (family, decoder), splits in groups:
        # Splits were run with different seeds: the first ones are paired.
        columns = []
        for r2 in splits["values"]:
            columns.append(r2.reset_index(drop=True))
        table = pd.concat(columns, axis=1)
        means = table.mean(axis=1, skipna=False)
        number = estimate(
            means.dropna(),
            by="mean",
            limits=AT_MOST_ONE,
        )
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
