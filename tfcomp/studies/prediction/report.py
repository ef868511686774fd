"""Tables and printed lines of the prediction study (docs/predict.md)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from tfcomp.config.errors import RunError
from tfcomp.storage.files import write_csv
from tfcomp.studies.prediction import early_numbers, rules
from tfcomp.studies.prediction.early_numbers import DECODER, Array, Networks
from tfcomp.studies.prediction.rules import Row

FOUND_OFTEN = 0.8
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


def write_report(
    folder: Path, found: Networks, fresh: Networks | None = None
) -> list[str]:
    """Writes all tables into a folder; returns the lines to print."""
    halves = found.get_half("explore"), found.get_half("confirm")
    with threadpool_limits(1):  # matrices are small
        explored, confirmed = rules.judge_halves(*halves)
        proposed = sum(row["passes"] for row in explored)
        tables = {
            "explore": explored,
            "confirm": confirmed,
            "power": rules.measure_power(halves, max(proposed, 1)),
            "baselines": list_baselines(found),
            "one_decoder": judge_early_numbers(found, fresh),
        }
    for name, rows in tables.items():
        write_csv(folder / f"{name}.csv", rows)
    lines = [TAU.format(**row) for row in confirmed if row["predicts"]]
    least = find_threshold(tables["power"])
    seen = f"from {least:.2f}" if least else "at no strength that was tried"
    return [
        *(lines or ["no measure passes the rules"]),
        f"planted predictors are seen in 80 % of draws {seen}",
        *(
            GAIN.format(**row) + VERDICTS[row["helps"]]
            for row in tables["one_decoder"]
        ),
    ]


def find_threshold(rows: Sequence[Row]) -> float | None:
    """Returns the correlation that is found often; None if none is."""
    found = np.maximum.accumulate([row["found"] for row in rows])
    if found[-1] < FOUND_OFTEN:
        return None
    return float(np.interp(FOUND_OFTEN, found, [r["spearman"] for r in rows]))


def list_baselines(found: Networks) -> list[Row]:
    """Returns the scores of predictions that use no number."""
    reached = found.table["reached"]
    met, share = found.select(reached), "share of the variance"
    decoders = met.table[DECODER]
    outcome = pd.Series(met.outcome, decoders.index)
    inside = outcome - outcome.groupby(decoders).transform("mean")
    facts = [
        ("decoder", f"{share} of the outcome", _explain(outcome, decoders))
    ]
    facts += [
        (name, f"{share} within decoders", _explain(inside, met.table[name]))
        for name in met.hyperparameters
        if name != DECODER
    ]
    transfer = rules.Order(met).compute_transfer(rules.make_features(met))
    what = "tau on a decoder that was left out"
    facts.append(("hyperparameters alone", what, transfer[0]))
    missed = found.table[DECODER][~reached].value_counts().sort_index()
    what = "networks that missed the target"
    facts += [(str(name), what, float(n)) for name, n in missed.items()]
    names = "subject", "what", "number"
    return [dict(zip(names, fact, strict=True)) for fact in facts]


def _explain(values: pd.Series, groups: pd.Series) -> float:
    """Returns the share of the variance between groups."""
    return values.groupby(groups).transform("mean").var() / values.var()


def judge_early_numbers(found: Networks, fresh: Networks | None) -> list[Row]:
    """Returns gains by all early numbers, also on fresh networks."""
    cases = {"settings left out": early_numbers.list_groups(found)}
    if fresh is not None:
        tables = found.table, fresh.table.assign(is_fresh=True)
        both = Networks(pd.concat(tables, ignore_index=True))
        pairs = early_numbers.list_groups(both).items()
        # Of a decoder and region, some are fresh, predicted from the others.
        tried = {n: g for n, g in pairs if len(set(g.is_fresh)) == 2}
        if not tried:
            rule = "must have networks of a decoder and region of --runs"
            raise RunError(f"--fresh {rule} that reached the target")
        cases["fresh networks"] = tried
    rows = []
    for case, groups in cases.items():
        forecasts = {name: group.forecast() for name, group in groups.items()}
        rng, controls = np.random.default_rng(0), list[dict[str, Array]]()
        for _ in range(early_numbers.PERMUTATIONS * (case == "fresh networks")):
            controls.append({n: g.forecast(rng) for n, g in groups.items()})
        row = early_numbers.judge_forecasts(forecasts, groups, controls)
        rows.append({"case": case} | row)
    return rows
