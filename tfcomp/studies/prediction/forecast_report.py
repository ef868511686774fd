"""Tables beside the judgement: what else orders networks, and how surely.

baselines.csv    what is known of networks without any measure
power.csv        how strong a planted predictor must be for the rules
one_decoder.csv  what all early numbers add for one decoder and region
trust.csv        the same, as shares of pairs of networks in the right order
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tfcomp.storage.files import read_csv, write_csv
from tfcomp.studies.prediction.baselines import list_baselines
from tfcomp.studies.prediction.design import DECODER, Found
from tfcomp.studies.prediction.forecast_scores import (
    PERMUTATIONS,
    describe_trust,
    judge_forecasts,
)
from tfcomp.studies.prediction.judgement import Evidence, Row
from tfcomp.studies.prediction.one_decoder import (
    Forecast,
    Group,
    forecast_fresh,
    forecast_left_out,
    make_groups,
)
from tfcomp.studies.prediction.power import find_threshold, measure_power

# Fewer settings of a decoder and region, or networks of a half, tell nothing.
MIN_CELLS, MIN_HALF = 8, 100
# The share of the networks of a decoder that met the target.
MOSTLY = 0.9


def write_forecasts(
    folder: Path,
    found: Sequence[Found],
    axes: Sequence[tuple[str, ...]],
    fresh: Sequence[Found] = (),
) -> None:
    """Writes the tables but that of the power.

    Args:
        fresh: Networks that nothing was chosen on, with the same axes.
    """
    write_csv(folder / "baselines.csv", list_baselines(found, axes))
    names = [name for axis in axes for name in axis]
    groups = _group(found, names)
    if not groups:
        return
    forecasts = [forecast_left_out(group) for group in groups]
    rows = [
        {"case": "settings left out"} | judge_forecasts(forecasts),
        *_try("given the ID error reached", found, names, with_error=True),
        *_try("decoders that mostly fit", _drop_missing(found), names),
    ]
    if fresh:
        count = len(found)
        pairs = _split(_group([*found, *fresh], names), count)
        forecasts = [forecast_fresh(*pair) for pair in pairs]
        rows.append(_judge_fresh(pairs, forecasts))
    empty = {"permuted_gain": None, "helps": None}  # without a control
    write_csv(folder / "one_decoder.csv", [empty | row for row in rows])
    write_csv(folder / "trust.csv", list(map(describe_trust, forecasts)))


def write_power(
    folder: Path, halves: Mapping[str, Evidence | None], num_proposed: int
) -> None:
    """Writes how strong a predictor must be, if there are networks enough."""
    sizes = [
        len(each.networks.outcome) if each else 0 for each in halves.values()
    ]
    if min(sizes) >= MIN_HALF:
        write_csv(folder / "power.csv", measure_power(halves, num_proposed))


def describe_forecasts(folder: Path) -> list[str]:
    """What the tables of a folder say, in a line each."""
    lines = []
    if (power := folder / "power.csv").exists():
        rows = [_to_numbers(row) for row in read_csv(power)]
        least = find_threshold(rows)
        seen = f"from {least:.2f}" if least else "at no strength that was tried"
        lines.append(f"planted predictors are seen in 80 % of draws {seen}")
    for name, describe in (
        ("one_decoder.csv", _describe_gain),
        ("trust.csv", _describe_trust),
    ):
        if (table := folder / name).exists():
            lines += [describe(_to_numbers(row)) for row in read_csv(table)]
    return lines


def _group(
    found: Sequence[Found], names: Sequence[str], **choice: bool
) -> list[Group]:
    """Decoders and regions with enough settings."""
    groups = make_groups(found, names, **choice)
    return [g for g in groups if len(np.unique(g.cells)) >= MIN_CELLS]


def _try(
    case: str, found: Sequence[Found], names: Sequence[str], **choice: bool
) -> list[Row]:
    """How the answer depends on a choice; without a control, so no verdict."""
    groups = _group(found, names, **choice)
    if not groups:
        return []
    forecasts = [forecast_left_out(group) for group in groups]
    return [{"case": case} | judge_forecasts(forecasts)]


def _drop_missing(found: Sequence[Found]) -> list[Found]:
    """The decoders of which few networks missed the target.

    What a network that missed it would have done is not known: if those that
    did not are a choice, this is where it shows.
    """
    decoders = [each.cell.setting[DECODER] for each in found]
    reached = np.array([each.record["reached"] for each in found])
    shares = {
        name: reached[np.equal(decoders, name)].mean() for name in set(decoders)
    }
    pairs = zip(found, decoders, strict=True)
    return [each for each, name in pairs if shares[name] >= MOSTLY]


def _judge_fresh(
    pairs: Sequence[tuple[Group, Group]], forecasts: Sequence[Forecast]
) -> Row:
    """The verdict, which has a control: the numbers of other networks."""
    rng = np.random.default_rng(0)
    others = [
        [
            forecast_fresh(old.permute(rng), new.permute(rng))
            for old, new in pairs
        ]
        for _ in range(PERMUTATIONS)
    ]
    return {"case": "fresh networks"} | judge_forecasts(forecasts, others)


def _split(groups: Sequence[Group], count: int) -> list[tuple[Group, Group]]:
    """The recorded and the fresh networks of groups that have both."""
    pairs = [
        (group.take(group.index < count), group.take(group.index >= count))
        for group in groups
    ]
    return [pair for pair in pairs if all(len(g.outcome) for g in pair)]


def _to_numbers(row: Mapping[str, str]) -> Row:
    """A row that was read, its numbers as numbers."""
    read: Row = {}
    for name, text in row.items():
        try:
            read[name] = float(text)
        except ValueError:
            read[name] = text
    return read


def _describe_gain(row: Row) -> str:
    verdict = {"True": ": they help", "False": ": they do not help"}
    first = row["spearman_hyperparameters"]
    return (
        f"early numbers, {row['case']}: Spearman {first:.2f} -> "
        f"{row['spearman_early']:.2f}, "
        f"gain {row['spearman_gain']:.2f} [{row['spearman_gain_low']:.2f}, "
        f"{row['spearman_gain_high']:.2f}]{verdict.get(row['helps'], '')}"
    )


def _describe_trust(row: Row) -> str:
    return (
        f"{row['pair']}: the better of two networks is named in "
        f"{row['early']:.0%} [{row['early_low']:.0%}, {row['early_high']:.0%}] "
        f"of pairs, by hyperparameters alone in {row['hyperparameters']:.0%}"
    )
