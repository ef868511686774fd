"""What the numbers of a section say, in a line; from its tables alone.

A line says no more than the numbers carry: where they point nowhere it says
so, and where there is none it is empty. Numbers that are close are "about
equal" (`CLOSE`), and of a correlation below `WEAK` nothing is concluded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

CLOSE = 0.05
WEAK = 0.3
# How far a model must be from a true composer towards a pure superposer for
# its outputs to be called superpositions, and for them to be called in part.
MOSTLY, PARTLY = 0.5, 0.1
MAX_NAMED = 3


def describe_course(rows: Sequence[Row], column: str, name: str) -> str:
    """How a number of stages goes from the first stage to the last."""

    def say(found: Sequence[Row]) -> str:
        known = [row for row in found if row.get(column) is not None]
        if len(known) < 2:
            return ""
        first, last = known[0], known[-1]
        start, end = first[column], last[column]
        least = min(known, key=lambda row: row[column])
        if abs(end - start) <= CLOSE * max(abs(start), abs(end)):
            course = f"is about {end:.2f} in the first stage and the last"
        else:
            verb = "rises" if end > start else "falls"
            course = (
                f"{verb} from {start:.2f} ({first['stage']}) to {end:.2f} "
                f"({last['stage']})"
            )
        if least[column] < min(start, end) - CLOSE * abs(min(start, end)):
            course += (
                f", and is least in {least['stage']} ({least[column]:.2f})"
            )
        return f"{name} {course}"

    return join_runs(rows, say)


def describe_superposition(rows: Sequence[Row]) -> str:
    """Whether outputs are sums of memories; from the far points if known."""

    def say(found: Sequence[Row]) -> str:
        for points in ("far", "all"):
            pair = [
                row["superposition"]
                for kind in ("model", "truth")
                for row in found
                if row["OOD outputs"] == kind and row["points"] == points
            ]
            if len(pair) == 2 and None not in pair:
                break
        else:
            return "no held-out output is bright enough to be scored"
        model, truth = pair
        share = (model - truth) / max(1 - truth, 1e-9)
        what = (
            "can mostly be written as sums of ID outputs that share a factor"
            if share >= MOSTLY
            else "can in part be written as sums of ID outputs that share a "
            "factor"
            if share >= PARTLY
            else "are no more superpositions than the true images are"
        )
        # Before training, R² can be as high (claim C4).
        may = "; untrained networks' may, too" if share >= PARTLY else ""
        r2 = f"R² {model:.2f}; truth {truth:.2f}"
        return f"held-out outputs {what} ({r2}){may}"

    return join_runs(rows, say)


def describe_kernels(rows: Sequence[Row]) -> str:
    """Which of the two ideal kernels the outputs resemble."""

    def say(found: Sequence[Row]) -> str:
        row = next((r for r in found if r["similarity"] == "cosine"), {})
        sum_, joint = row.get("factorized"), row.get("conjunctive")
        if sum_ is None or joint is None:
            return ""
        numbers = f"(alignment {sum_:.2f} factorized, {joint:.2f} conjunctive)"
        if max(sum_, joint) < CLOSE:
            return f"the outputs resemble neither ideal kernel {numbers}"
        if abs(sum_ - joint) < CLOSE:
            return f"the outputs resemble both ideal kernels alike {numbers}"
        which = "factorized" if sum_ > joint else "conjunctive"
        return f"the outputs resemble the {which} kernel more {numbers}"

    return join_runs(rows, say)


def describe_gaps(rows: Sequence[Row]) -> str:
    """Whether outputs in a gap are interpolations of its edges."""

    def say(found: Sequence[Row]) -> str:
        pairs = [(r["interpolation_r2"], r["truth_r2"]) for r in found]
        pairs = [pair for pair in pairs if None not in pair]
        if not pairs:
            return ""
        output, truth = (sum(v) / len(v) for v in zip(*pairs, strict=True))
        what = (
            "more an interpolation of the edges than"
            if output > truth + CLOSE
            else "less an interpolation of the edges than"
            if output < truth - CLOSE
            else "as much an interpolation of the edges as"
        )
        return (
            f"what is drawn across the gap is {what} the truth is "
            f"(R² {output:.2f}; truth {truth:.2f})"
        )

    return join_runs(rows, say)


def describe_border(correlations: Mapping[str, float | None]) -> str:
    """Whether the OOD error rises with the distance to ID, by run."""

    def say(found: Sequence[Row]) -> str:
        rho = found[0]["rho"]
        if rho is None:
            return ""
        how = (
            "hardly depends on"
            if abs(rho) < WEAK
            else "rises with"
            if rho > 0
            else "falls with"
        )
        rank = f"(rank correlation {rho:.2f})"
        return f"the OOD error {how} the distance to ID {rank}"

    return join_runs(
        [{"run": r, "rho": v} for r, v in correlations.items()], say
    )


def describe_errors(rows: Sequence[Row]) -> str:
    """The relative errors over ID and over OOD points."""

    def say(found: Sequence[Row]) -> str:
        known = [
            f"{row['relative_mse']:.2g} over {row['subset'].upper()}"
            for row in found
            if row["subset"] in ("id", "ood")
            and row["relative_mse"] is not None
        ]
        return f"the relative error is {' and '.join(known)}" if known else ""

    return join_runs(rows, say)


def describe_ranks(rows: Sequence[Row]) -> str:
    """The effective ranks of embeddings, by factor."""

    def say(found: Sequence[Row]) -> str:
        ranks = [
            f"{row['factor']} {row['effective_rank']:.1f}"
            for row in found
            if row.get("effective_rank") is not None
        ]
        return f"effective rank of {', '.join(ranks)}" if ranks else ""

    return join_runs(rows, say)


def join_runs(rows: Sequence[Row], say: Callable[[Sequence[Row]], str]) -> str:
    """What is said of the rows of every run, as one line.

    The run is named if there are several; of many, the first ones are told.
    """
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row["run"], []).append(row)
    found = {name: text for name, lines in runs.items() if (text := say(lines))}
    if not found:
        return ""
    named = [f"{name}: {text}" for name, text in found.items()]
    shown = [*found.values()] if len(runs) == 1 else named[:MAX_NAMED]
    more = f"; and {len(named) - MAX_NAMED} more" if named[MAX_NAMED:] else ""
    text = "; ".join(shown) + more + "."
    return text[0].upper() + text[1:] if len(runs) == 1 else text
