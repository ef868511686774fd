"""The first screen of several runs: a table of settings, and a test.

The report of runs and the page of a sweep show the same table. Their sentences
follow from the paired tests of `tfcomp.statistics.seed_tests`, which the
section of comparisons lists.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfcomp.evaluation.metrics import find_limits
from tfcomp.evaluation.verbalize import FITTED, list_references
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Links, Section
from tfcomp.statistics.seed_statistics import Statistics, compute_statistics
from tfcomp.statistics.seed_tests import compare_settings

Row = Mapping[str, Any]
SUBSETS = ("id", "ood")
HELD_OUT = "ood_relative_mse"
MIN_SEEDS = 3  # the interval of two is wider than any figure of them
MAX_NAMED = 3
MAX_LINKS = 5
LEVEL = 0.05
HUGE = 1e4  # after which decimals say nothing
# Predictors of `references` in `metrics.json`, and their columns.
RIVALS = {
    "nearest_id": "nearest image",
    "additive": "sum of effects",
    "mean_image": "mean image",
}
IGNORED = "one factor ignored"
CAPTION = (
    "Means over seeds of the pixel MSE divided by the MSE of a reference (a "
    "blank image if the data declare a constant ground, else the mean training "
    "image), with 95 % intervals of three seeds or more. ID: combinations of "
    "factors outside the held-out region; OOD: inside. The other columns are "
    "OOD errors on the same data: of the network before training, of the "
    "nearest training image, of the best sum of effects of single factors, of "
    "the mean training image, and of true images with one factor at its most "
    "frequent value (the factor with which that errs least)."
)


@dataclass(frozen=True)
class ScoredRun:
    """The relative errors of a run, and of predictors without training.

    Attributes:
        errors: Errors by subset.
        others: OOD errors by column of the table.
        link: Address of the run, beside the page.
    """

    setting: str
    seed: int
    errors: Mapping[str, float | None]
    others: Mapping[str, float | None] = field(default_factory=dict)
    link: str = ""


def read_scored(
    setting: str, seed: int, metrics: Mapping[str, Any], link: str = ""
) -> ScoredRun:
    """Reads the errors of a run from the content of its `metrics.json`."""
    references = metrics.get("references", {})
    others = {"untrained": metrics.get("untrained", {}).get("ood")} | {
        column: references.get(name, {}).get("ood")
        for name, column in RIVALS.items()
    }
    for name in list_references(references):
        if name not in RIVALS:
            others[IGNORED] = references[name]["ood"]
    errors = {s: metrics.get(s, {}).get("relative_mse") for s in SUBSETS}
    return ScoredRun(setting, seed, errors, others, link)


def make_table(runs: Sequence[ScoredRun], method: str = "student") -> Exhibit:
    """Makes the table of settings, one row each."""
    settings = dict.fromkeys(run.setting for run in runs)
    groups = {s: [r for r in runs if r.setting == s] for s in settings}
    found = {
        setting: {s: _summarize(group, s, method) for s in SUBSETS}
        for setting, group in groups.items()
    }
    digits = {
        s: _choose_digits([f[s] for f in found.values()]) for s in SUBSETS
    }
    rows = []
    for setting, group in groups.items():
        row: dict[str, Any] = {"setting": setting, "seeds": _link(group)}
        for subset in SUBSETS:
            mean, interval = _format(found[setting][subset], digits[subset])
            row |= {subset.upper(): mean, f"{subset.upper()} 95 %": interval}
        for column in ("untrained", *RIVALS.values(), IGNORED):
            values = [run.others.get(column) for run in group]
            known = [v for v in values if v is not None and math.isfinite(v)]
            row[column] = None
            if known:
                average = sum(known) / len(known)
                row[column] = f"{average:.{digits['ood']}f}"
        rows.append(row)
    return Exhibit("relative_errors", "Relative errors", CAPTION, rows=rows)


def compare_runs(
    runs: Sequence[ScoredRun], pairs: str = "first"
) -> list[dict[str, Any]]:
    """Compares OOD errors of settings at equal seeds, the first with others.

    A pair is named by `a` and `b`; the numbers are of `compare_settings`.
    """
    import pandas as pd

    table = pd.DataFrame(
        {
            "setting": [run.setting for run in runs],
            "seed": [run.seed for run in runs],
            "score": HELD_OUT,
            "value": [run.errors.get("ood") for run in runs],
        }
    )
    found = compare_settings(table, ["setting"], pairs=pairs)
    names = {"setting_a": "a", "setting_b": "b"}
    rows: list[Any] = found.rename(columns=names).to_dict("records")
    return rows


def compare_section(runs: Sequence[ScoredRun]) -> Section | None:
    """Makes the section of paired tests; None if there are none."""
    if len({run.setting for run in runs}) < 2:
        return None
    rows = compare_runs(runs)
    if all(row["p_holm"] is None for row in rows):
        return None
    return make_section(rows, describe_tests(rows, runs[0].setting))


def make_section(rows: Sequence[Row], finding: str) -> Section:
    """Makes the section of comparisons, with the sentence of the answer."""
    caption = (
        "Setting b less setting a, at equal seeds; p_holm is corrected for "
        "the pairs of a score."
    )
    table = Exhibit("paired", "Differences", caption, rows=[*map(dict, rows)])
    text = "Pairs of settings at equal seeds."
    return Section("paired", "Comparisons", text, [table], finding)


def describe_pairs(runs: Sequence[ScoredRun]) -> str:
    """Describes the differences of all settings from the first one."""
    if len({run.setting for run in runs}) < 2:
        return ""
    return describe_tests(compare_runs(runs), runs[0].setting)


def describe_fits(runs: Sequence[ScoredRun]) -> str:
    """Counts settings that fit, and names the best of them on held-out data."""
    means: dict[str, dict[str, float]] = {}
    for setting in dict.fromkeys(run.setting for run in runs):
        group = [run for run in runs if run.setting == setting]
        found = {s: _summarize(group, s, "student") for s in SUBSETS}
        means[setting] = {s: f.mean for s, f in found.items() if f is not None}
    known = {setting: m for setting, m in means.items() if "id" in m}
    if not known:
        return "No setting has an ID error for every seed."
    fit = {setting: m for setting, m in known.items() if m["id"] <= FITTED}
    text = (
        f"{len(fit)} of {len(known)} settings fit their training data (mean ID "
        f"error at most {100 * FITTED:.0f} %)"
    )
    if not fit:
        return f"{text}, so their OOD errors are no test of generalization."
    held_out = {s: m["ood"] for s, m in fit.items() if "ood" in m}
    if not held_out:
        return f"{text}."
    best = min(held_out, key=lambda s: held_out[s])
    return (
        f"{text}; of these, {best} has the lowest mean OOD error "
        f"({held_out[best]:.3g})."
    )


def describe_tests(rows: Sequence[Row], reference: str = "") -> str:
    """Describes the paired tests of OOD errors.

    Args:
        rows: Pairs with `a` and `b`, the settings, and the numbers of
            `compare_settings`; `difference` is b less a.
        reference: The setting `a` of all pairs, if it is one.
    """
    tested = [row for row in rows if row["p_holm"] is not None]
    if not tested:
        return "Differences are not tested: that needs two seeds or more."
    clear = [row for row in tested if row["p_holm"] < LEVEL]
    shown = tested if len(tested) == 1 else clear
    pairs = f"pairs with {reference}" if reference else "pairs"
    text = (
        f"At equal seeds the OOD error differs in {len(clear)} of "
        f"{len(tested)} {pairs} (paired t-test, p < {LEVEL} by Holm)"
    )
    named = [_describe_pair(row) for row in shown[:MAX_NAMED]]
    if len(clear) > MAX_NAMED:
        named.append(f"{len(clear) - MAX_NAMED} more")
    return f"{text}: {'; '.join(named)}." if named else f"{text}."


def _describe_pair(row: Row) -> str:
    interval = ""
    if row["low"] is not None:
        interval = f" [{row['low']:.3g}, {row['high']:.3g}]"
    return (
        f"{row['b']} less {row['a']} is {row['difference']:.3g}{interval}, "
        f"p = {row['p_holm']:.2g}"
    )


def _summarize(
    runs: Sequence[ScoredRun], subset: str, method: str
) -> Statistics | None:
    values = [run.errors.get(subset) for run in runs]
    limits = find_limits(f"{subset}_relative_mse")
    return compute_statistics(values, method, limits)


def _choose_digits(found: Sequence[Statistics | None]) -> int:
    """Returns decimals of a column, two digits for its least number."""
    known = [f.mean for f in found if f is not None and 0 < f.mean < math.inf]
    if not known:
        return 2
    return min(5, max(2, 1 - math.floor(math.log10(min(known)))))


def _format(
    found: Statistics | None, digits: int
) -> tuple[str | None, str | None]:
    """Formats mean and interval; the mean alone of few seeds."""
    if found is None:
        return None, None
    mean = f"{found.mean:.{digits}f}"
    if found.mean >= HUGE:
        return f"{found.mean:.3g}", None
    if found.count < MIN_SEEDS or found.low is None or found.high is None:
        return mean, None
    return mean, f"{found.low:.{digits}f} to {found.high:.{digits}f}"


def _link(runs: Sequence[ScoredRun]) -> Links:
    return Links(list(_list_links(sorted(runs, key=lambda run: run.seed))))


def _list_links(runs: Sequence[ScoredRun]) -> Iterator[tuple[str, str]]:
    for run in runs[:MAX_LINKS]:
        yield str(run.seed), run.link
    if len(runs) > MAX_LINKS:
        yield f"… ({len(runs)})", ""
