"""Tables and printed lines of the prediction study.

explore.csv, confirm.csv   the statistics of every number, on each half
power.csv                  how strong a planted predictor must be to be found
baselines.csv              facts about networks that need no number
one_decoder.csv            what all early numbers add for one decoder and region
trust.csv                  the same, as shares of pairs in the right order
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from threadpoolctl import threadpool_limits

from tfcomp.storage.files import write_csv
from tfcomp.studies.prediction import early_numbers, networks, rules
from tfcomp.studies.prediction.networks import DECODER, Array, Networks
from tfcomp.studies.prediction.rules import Row

FOUND_OFTEN = 0.8
MOSTLY = 0.9  # of the networks of a decoder reached the target
TAU = (
    "{measure} at {time:.0%} predicts: tau {tau:.2f} "
    "[{tau_low:.2f}, {tau_high:.2f}]"
)
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
    """Writes all tables into a folder; returns the lines to print."""
    halves = found.get_half("explore"), found.get_half("confirm")
    with threadpool_limits(1):  # matrices are small
        explored, confirmed = rules.judge_halves(*halves)
        proposed = sum(row["passes"] for row in explored)
        power = rules.measure_power(halves, max(proposed, 1))
        baselines = list_baselines(found)
        one_decoder, trust = judge_early_numbers(found, fresh)
    tables = {
        "explore": explored,
        "confirm": confirmed,
        "power": power,
        "baselines": baselines,
        "one_decoder": one_decoder,
        "trust": trust,
    }
    for name, rows in tables.items():
        write_csv(folder / f"{name}.csv", rows)
    lines = [TAU.format(**row) for row in confirmed if row["predicts"]]
    least = find_threshold(power)
    seen = f"from {least:.2f}" if least else "at no strength that was tried"
    return [
        *(lines or ["no measure passes the rules"]),
        f"planted predictors are seen in 80 % of draws {seen}",
        *(GAIN.format(**row) + VERDICTS[row["helps"]] for row in one_decoder),
        *(TRUST.format(**row) for row in trust),
    ]


def find_threshold(rows: Sequence[Row]) -> float | None:
    """Returns the correlation that is found often; None if none is."""
    found = np.maximum.accumulate([row["found"] for row in rows])
    if found[-1] < FOUND_OFTEN:
        return None
    return float(np.interp(FOUND_OFTEN, found, [r["spearman"] for r in rows]))


def list_baselines(found: Networks) -> list[Row]:
    """Returns facts about networks that need no number."""
    met, table = found.select(found.table["reached"]), found.table
    reached, outcome = met.table[networks.ID_ERROR], met.outcome
    decoders = met.table[DECODER]
    means = met.table.assign(outcome=outcome).groupby(DECODER)["outcome"]
    inside = outcome - means.transform("mean").to_numpy()
    transfer = rules.Order(met).compute_transfer(rules.make_features(met))
    rank = stats.spearmanr(reached, outcome).statistic
    missed = table[DECODER][~table["reached"]].value_counts()
    within = "share of the variance within decoders"
    facts = {
        ("decoder", "share of the variance of the outcome"): _explain(
            outcome, decoders
        )
    }
    for name in met.hyperparameters:
        if name != DECODER:
            facts[name, within] = _explain(inside, met.table[name])
    facts |= {
        ("hyperparameters alone", "tau on a decoder that was left out"): (
            transfer[0]
        ),
        ("smallest", "ID error that was reached"): reached.min(),
        ("largest", "ID error that was reached"): reached.max(),
        ("ID error reached", "Spearman with the outcome"): rank,
    }
    for time in ("0.05", "0.1", "0.25", "1"):
        # The first epoch can be longer than a share of the training.
        subject = f"the look at {float(time):.0%}"
        is_untrained = met.table[f"{time}|{networks.SHARE}"] == 0
        facts[subject, "networks that are not trained yet"] = (
            is_untrained.mean()
        )
    for decoder, count in sorted(missed.items()):
        facts[str(decoder), "networks that missed the target"] = count
    return [
        {"subject": subject, "what": what, "number": float(number)}
        for (subject, what), number in facts.items()
    ]


def _explain(values: Array, groups: pd.Series) -> float:
    """Returns the share of the variance between groups."""
    column = pd.Series(values, groups.index)
    return column.groupby(groups).transform("mean").var() / column.var()


def judge_early_numbers(
    found: Networks, fresh: Networks | None = None
) -> tuple[list[Row], list[Row]]:
    """Returns what all early numbers add, in all and for each group."""
    shares = found.table.groupby(DECODER)["reached"].transform("mean")
    # Networks that missed the target may have been a choice.
    mostly = found.select((shares >= MOSTLY).to_numpy())
    cases = {
        "settings left out": early_numbers.list_groups(found),
        "given the ID error reached": early_numbers.list_groups(found, True),
        "decoders that mostly fit": early_numbers.list_groups(mostly),
    }
    if fresh is not None:
        tables = found.table, fresh.table.assign(is_fresh=True)
        both = Networks(pd.concat(tables, ignore_index=True))
        cases["fresh networks"] = early_numbers.list_groups(both)
    rows = []
    for case, groups in cases.items():
        forecasts = {name: group.forecast() for name, group in groups.items()}
        rng, controls = np.random.default_rng(0), []
        for _ in range(early_numbers.PERMUTATIONS * (case == "fresh networks")):
            controls.append({n: g.forecast(rng) for n, g in groups.items()})
        row = early_numbers.judge_forecasts(forecasts, groups, controls)
        rows.append({"case": case} | row)
        if case in ("settings left out", "fresh networks"):
            trust = [
                early_numbers.describe_trust(name, table, groups[name])
                for name, table in forecasts.items()
            ]
    return rows, trust
