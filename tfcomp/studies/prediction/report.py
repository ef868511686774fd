"""Tables, figures and printed lines of a prediction study.

explore.csv, confirm.csv   the statistics of every number, on each half
power.csv                  how strong a planted predictor must be to be found
baselines.csv              what is known of networks without any number
one_decoder.csv            what all early numbers add for one decoder and region
trust.csv                  the same, as shares of pairs in the right order
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from threadpoolctl import threadpool_limits

from tfcomp.config.quiet import show_progress
from tfcomp.figures.exhibits import Exhibit, save_exhibit
from tfcomp.figures.layout import finish_figure
from tfcomp.figures.line_style import get_line_style
from tfcomp.storage.files import make_subfolder, write_csv
from tfcomp.studies.prediction import early_numbers, networks, rules
from tfcomp.studies.prediction.networks import DECODER, HALVES, Array, Networks
from tfcomp.studies.prediction.rules import Row

MIN_HALF = 100  # networks of each half, for a measure of power
STRENGTHS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
DRAWS = 20
FOUND_OFTEN = 0.8
MOSTLY = 0.9  # of the networks of a decoder reached the target
SHOWN = 6  # numbers in the figure, beside the ID error
TABLES = (*HALVES, "power", "baselines", "one_decoder", "trust")
PANELS = {
    "tau": "all pairs",
    "conditional_tau": "pairs that share two hyperparameters",
}
GAIN = (
    "early numbers, {case}: Spearman {spearman_hyperparameters:.2f} -> "
    "{spearman_early:.2f}, gain {spearman_gain:.2f} "
    "[{spearman_gain_low:.2f}, {spearman_gain_high:.2f}]"
)
VERDICTS = {True: ": they help", False: ": they do not help", None: ""}
TRUST = (
    "{pair}: the better of two networks is named in {early:.0%} "
    "[{early_low:.0%}, {early_high:.0%}] of pairs, by hyperparameters alone in "
    "{hyperparameters:.0%}"
)


def write_report(
    folder: Path, found: Networks, fresh: Networks | None = None
) -> list[str]:
    """Writes tables and figures into a folder; returns the lines to print."""
    with threadpool_limits(1):  # matrices are small
        tables = _make_tables(found, fresh)
    for name in TABLES:
        (folder / f"{name}.csv").unlink(missing_ok=True)  # of another study
        if tables[name]:
            write_csv(folder / f"{name}.csv", tables[name])
    if first := tables["explore"]:
        exhibit = make_exhibit(tables["confirm"] or first, first)
        save_exhibit(exhibit, make_subfolder(folder, "figures"))
    return _describe(tables)


def _make_tables(
    found: Networks, fresh: Networks | None
) -> dict[str, list[Row]]:
    """Returns the rows of all `TABLES`."""
    halves = {half: found.get_half(half) for half in HALVES}
    tables = judge_halves(halves)
    proposed = sum(row["passes"] for row in tables["explore"])
    sizes = [len(half.table) for half in halves.values()]
    tables["power"] = []
    if min(sizes) >= MIN_HALF:
        tables["power"] = measure_power(halves, max(proposed, 1))
    tables["baselines"] = list_baselines(found) if sum(sizes) else []
    tables["one_decoder"], tables["trust"] = judge_early_numbers(found, fresh)
    return tables


def judge_halves(halves: dict[str, Networks]) -> dict[str, list[Row]]:
    """Returns the statistics of both halves; no rows for an empty half."""
    first, second = (halves[half] for half in HALVES)
    if not len(first.table):
        return {half: [] for half in HALVES}
    keys = first.list_keys()
    judged = rules.judge(first, keys)
    rows = list(show_progress(judged, HALVES[0], "number", len(keys)))
    if not len(second.table):
        return {HALVES[0]: rows, HALVES[1]: []}
    signs = {(row["measure"], row["time"]): row["sign"] for row in rows}
    pairs = zip(signs, rows, strict=True)
    proposed = [key for key, row in pairs if row["passes"]]
    keys = [key for key in second.list_keys() if key in signs]
    judged = rules.judge(second, keys, signs, proposed)
    again = list(show_progress(judged, HALVES[1], "number", len(keys)))
    for key, row in zip(keys, again, strict=True):
        row["proposed"] = key in proposed
        row["predicts"] = row["proposed"] and row["passes"]
    return {HALVES[0]: rows, HALVES[1]: again}


def measure_power(
    halves: dict[str, Networks],
    num_proposed: int,
    strengths: Sequence[float] = STRENGTHS,
) -> list[Row]:
    """Returns how often planted predictors of each strength pass both halves.

    The level of the second half is shared among the proposed numbers.
    """
    rng = np.random.default_rng(0)
    orders = [rules.Order(halves[half]) for half in HALVES]
    levels = [rules.LEVEL, 1 - (1 - rules.LEVEL) / num_proposed]
    rows = []
    for strength in strengths:
        correlations, seen = [], []
        for _ in range(DRAWS):
            planted = [
                _plant(o.networks.outcome, strength, rng) for o in orders
            ]
            tried = zip(orders, planted, levels, strict=True)
            judged = [
                rules.judge_one(order, ("planted", 0.1), values, 1.0, level)
                for order, values, level in tried
            ]
            seen.append(all(row["passes"] for row in judged))
            correlations += [
                stats.spearmanr(values, order.networks.outcome).statistic
                for order, values in zip(orders, planted, strict=True)
            ]
        row = {"spearman": np.mean(correlations), "draws": DRAWS}
        rows.append(row | {"found": np.mean(seen)})
    return rows


def _plant(outcome: Array, strength: float, rng: np.random.Generator) -> Array:
    """Returns a predictor with about this Spearman correlation."""
    # Normal variables with this Spearman correlation have that of Pearson.
    linear = 2 * np.sin(np.pi / 6 * strength)
    normal = stats.norm.ppf((stats.rankdata(outcome) - 0.5) / len(outcome))
    noise = rng.standard_normal(len(outcome))
    return linear * normal + np.sqrt(1 - linear**2) * noise


def find_threshold(rows: Sequence[Row]) -> float | None:
    """Returns the correlation that is found often; None if none is."""
    found = np.maximum.accumulate([row["found"] for row in rows])
    if found[-1] < FOUND_OFTEN:
        return None
    return float(np.interp(FOUND_OFTEN, found, [r["spearman"] for r in rows]))


def list_baselines(found: Networks) -> list[Row]:
    """Returns what is known of networks without any number."""
    met, missed = found.fitted, found.table[~found.table["reached"]]
    outcome = met.table.assign(outcome=met.outcome)
    average = outcome.groupby(DECODER)["outcome"].transform("mean")
    inside = outcome.assign(outcome=outcome["outcome"] - average)
    others = [name for name in met.hyperparameters if name != DECODER]
    reached = met.table[networks.ID_ERROR]
    transfer = rules.Order(met).compute_transfer(rules.make_features(met))
    facts: dict[str, dict[Any, float]] = {
        "share of the variance of the outcome": {
            "decoder": _explain(outcome, DECODER)
        },
        "share of the variance within decoders": {
            name: _explain(inside, name) for name in others
        },
        "tau on a decoder that was left out": {
            "hyperparameters alone": transfer[0]
        },
        "ID error that was reached": {
            "smallest": reached.min(),
            "largest": reached.max(),
        },
        "Spearman with the outcome": {
            "ID error reached": stats.spearmanr(reached, met.outcome).statistic
        },
        # The first epoch can be longer than a share of the training.
        "networks that are not trained yet": {
            f"the look at {time:.0%}": (met.get((name, time)) == 0).mean()
            for name, time in met.keys
            if name == networks.SHARE and time > 0
        },
        "networks that missed the target": {
            name: (missed[DECODER] == name).sum()
            for name in sorted(set(missed[DECODER]))
        },
    }
    return [
        {"subject": name, "what": what, "number": float(value)}
        for what, values in facts.items()
        for name, value in values.items()
    ]


def _explain(table: pd.DataFrame, name: str) -> float:
    """Returns the share of the variance between the values of a column."""
    means = table.groupby(name)["outcome"].transform("mean")
    return means.var() / max(table["outcome"].var(), 1e-300)


def judge_early_numbers(
    found: Networks, fresh: Networks | None = None
) -> tuple[list[Row], list[Row]]:
    """Returns what all early numbers add, in all and for each group."""
    if not found.table["reached"].any():
        return [], []
    features = {
        "settings left out": early_numbers.Features(found),
        "given the ID error reached": early_numbers.Features(found, True),
    }
    # Networks that missed the target may have been a choice.
    shares = found.table.groupby(DECODER)["reached"].transform("mean")
    if (shares >= MOSTLY).any():
        mostly = found.select((shares >= MOSTLY).to_numpy())
        features["decoders that mostly fit"] = early_numbers.Features(mostly)
    made = {name: each.forecast_left_out() for name, each in features.items()}
    empty = {"permuted_gain": None, "helps": None}
    rows = [
        empty | {"case": name} | early_numbers.judge_forecasts(forecasts)
        for name, forecasts in made.items()
        if forecasts
    ]
    forecasts = made["settings left out"]
    if fresh is not None and forecasts:
        every = early_numbers.Features(found.join(fresh))
        forecasts = every.forecast_fresh()
        controls = early_numbers.permute(every)
        row = early_numbers.judge_forecasts(forecasts, controls)
        rows.append(empty | {"case": "fresh networks"} | row)
    return rows, [early_numbers.describe_trust(each) for each in forecasts]


def _describe(tables: dict[str, list[Row]]) -> list[str]:
    """Returns what the tables say, in a line each."""
    rows = tables["confirm"] or tables["explore"]
    column = "predicts" if tables["confirm"] else "passes"
    word = "predicts" if tables["confirm"] else "is proposed"
    lines = [
        f"{row['measure']} at {row['time']:.0%} {word}: tau "
        f"{row['tau']:.2f} [{row['tau_low']:.2f}, {row['tau_high']:.2f}]"
        for row in rows
        if row[column]
    ] or ["no measure passes the rules"]
    if tables["power"]:
        least = find_threshold(tables["power"])
        seen = f"from {least:.2f}" if least else "at no strength that was tried"
        lines.append(f"planted predictors are seen in 80 % of draws {seen}")
    for row in tables["one_decoder"]:
        lines.append(GAIN.format(**row) + VERDICTS[row["helps"]])
    return lines + [TRUST.format(**row) for row in tables["trust"]]


def make_exhibit(rows: Sequence[Row], first: Sequence[Row]) -> Exhibit:
    """Shows the taus of some numbers over the time of measurement.

    These are the ID error, and the numbers of ID points with the highest early
    tau on the exploring half, whose rows come first.
    """
    table, ranked = pd.DataFrame(rows), pd.DataFrame(first)
    fair = ranked[(ranked["time"] < 1) & ~ranked["peeks"]]
    fair = fair.sort_values("tau", ascending=False, kind="stable")
    names = [networks.ID_ERROR, *fair["measure"]]
    names = list(dict.fromkeys(names))[: SHOWN + 1]
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (column, heading) in zip(panels, PANELS.items(), strict=True):
        for index, name in enumerate(names):
            own = table[table["measure"] == name]
            style = get_line_style(index) | {"markersize": 4}
            axes.plot(own["time"], own[column], label=name, **style)
        axes.axhline(0.0, color="0.6", linewidth=1)
        axes.set_title(heading, fontsize="medium")
        axes.set_xlabel("share of the training")
        axes.set_xscale("symlog", linthresh=0.05)
    panels[0].set_ylabel("Kendall's tau")
    title = "Which early number orders networks by their OOD error?"
    finish_figure(figure, title)
    caption = (
        "Kendall's tau between the OOD error and numbers measured at five "
        "times, in the direction found on the exploring half. Right: the "
        "smallest tau over pairs of networks that share two hyperparameters."
    )
    ends = [f"{column}{end}" for column in PANELS for end in ("_low", "_high")]
    shown: Any = table.loc[
        table["measure"].isin(names), ["measure", "time", *PANELS, *ends]
    ]
    return Exhibit(
        "predict_times", title, caption, figure, shown.to_dict("records")
    )
