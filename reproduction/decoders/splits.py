"""Splits of sprites by the share of combinations that training determines.

By `evidence/plan.md`, fixed before the runs: the number of a decoder is the
mean R² of held-out images, over runs whose ID R² is at least .9. A
decoder solves a split if the lower end of its interval lies above .9 and above
the best reference, a predictor without a network.
"""

import numpy as np
import pandas as pd

from reproduction.decoders import cells
from reproduction.decoders.cells import FRESH, Row, average

RIVALS = {"additive", "cnn", "slots"}  # of decoders_law.flags
# First seeds of the replication rounds of version 2.
ROUNDS = (FRESH, 210, 220)
FACTS = {
    "training_images": "points/id",
    "certified_1": "certificate/1/certified",
    "certified_2": "certificate/2/certified",
    "certified_3": "certificate/3/certified",
    "missing_images": "certificate/1/missing_rank",
    "lit_pixels": "coverage/pixels",
}
IMAGES = (*cells.IMAGE_FLAGS, "sprite_sizes")
COUNTS = ("training_images", "missing_images")


def list_rows(table: pd.DataFrame, data: str = "sprites") -> list[Row]:
    """Returns rows of decoders and predictors; determined splits come first."""
    kept = ("split", "model", "seed", "setting", *IMAGES)
    names = [n for n in map(str, table) if "/" in n or n in kept]
    runs = table.loc[table["split"].str.startswith(f"{data} "), names]
    groups = runs.groupby("split", sort=False)
    splits = [_list_split(str(name), group) for name, group in groups]
    keys = "certified_1", "training_images"
    splits.sort(key=lambda rows: [-np.nan_to_num(rows[0][k]) for k in keys])
    return [row for rows in splits for row in rows]


def _list_split(name: str, runs: pd.DataFrame) -> list[Row]:
    places = runs.groupby([*IMAGES], dropna=False).ngroup()
    runs = runs[places == places.mode().iloc[0]]  # of most runs
    latest, earlier = [], []
    for decoder, group in runs.groupby("model"):
        place = np.searchsorted(ROUNDS, group["seed"], side="right")
        looks = (_keep_setting(look) for _, look in group.groupby(place))
        *before, last = ((decoder, look) for look in looks)
        latest.append(last)
        # Version 1 had other rules.
        earlier += [r for r in before if r[1]["seed"].iloc[0] >= FRESH]
    # Later versions of the code record more.
    facts = max((r for _, r in latest), key=lambda r: r["seed"].iloc[0]).head(1)
    region, _, images = name.partition(" ")[2].partition("&not:")
    # The images complete the certificate of the region.
    shared: Row = {"split": region + " completed" * bool(images)}
    shared |= {fact: average(facts, path) for fact, path in FACTS.items()}
    shared |= {n: int(shared[n]) for n in COUNTS if shared[n] > 0}
    references = _list_references(facts.iloc[0])
    bound = max([cells.BOUND, *(row["r2"] for row in references)])
    rounds = [_describe_round(str(d), r, bound) for d, r in latest + earlier]
    return [shared | row for row in (*rounds, *references)]


def _keep_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs that differ in their seed alone, as most of them do."""
    runs = runs[runs["setting"] == runs["setting"].mode().iloc[0]]
    return runs.drop_duplicates("seed", keep="last").sort_values("seed")


def _list_references(run: pd.Series) -> list[Row]:
    """Returns R² of predictors without a network, from their errors."""
    # Of the mean image.
    mean = run["ood/relative_mse"] / (1 - run["r2/ood"])
    errors = run.filter(regex="^references/.*/ood$")
    errors = errors.drop("references/mean_image/ood", errors="ignore")
    r2 = (1 - errors.astype(float) / mean).dropna()
    names = [f"({str(path).split('/')[1]})" for path in r2.index]
    pairs = zip(names, r2, strict=True)
    return [{"decoder": name, "r2": value} for name, value in pairs]


def _describe_round(decoder: str, runs: pd.DataFrame, bound: float) -> Row:
    fitted, _, (mean, low, high) = cells.estimate_r2(runs)
    solves = "yes" if low > bound else "no" if high <= bound else "?"
    solves = "?" if cells.is_open(runs, fitted) else solves
    return {
        "decoder": decoder,
        "first_seed": int(runs["seed"].iloc[0]),
        "runs": len(runs),
        "fitted": len(fitted),
        "fitted_at_85": int((runs["r2/id"] >= 0.85).sum()),
        "fitted_at_95": int((runs["r2/id"] >= 0.95).sum()),
        "r2": mean,
        "r2_low": low,
        "r2_high": high,
        "solves": solves if low == low else "",
        "r2_certified": average(fitted, "r2/certified"),
        "r2_others": average(fitted, "r2/others"),
    }


def list_pairs(solved: pd.DataFrame) -> list[list[str]]:
    """Counts pairs of splits with a higher R² on the determined one.

    Only splits count that were not used when the hypothesis was stated.
    """
    rounds = solved[solved["first_seed"].notna()]
    first = rounds.sort_values("first_seed", kind="stable")
    first = first.drop_duplicates(["split", "decoder"])
    latest = rounds.drop_duplicates(["split", "decoder"])
    is_new = latest.groupby("split").apply(
        lambda rows: (
            not RIVALS.isdisjoint(rows["decoder"])
            and rows["first_seed"].min() >= FRESH
        )
    )
    first = first[first["split"].map(is_new)].dropna(subset="r2")
    counted = []
    for decoder, rows in first.groupby("decoder"):
        is_known = rows["certified_1"] == 1
        known, others = rows["r2"][is_known], rows["r2"][~is_known]
        ordered = (known.to_numpy()[:, None] > others.to_numpy()).sum()
        if total := len(known) * len(others):
            texts = decoder, len(rows), len(others), f"{ordered} of {total}"
            counted.append(list(map(str, texts)))
    return counted
