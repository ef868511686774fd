"""Words of a report: names of runs, and sentences on numbers."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.statistics.seed_statistics import IGNORED, choose_flags, make_label

Row = Mapping[str, Any]

# Flags in a subtitle, and their words.
SUBTITLE = {
    "dataset": "dataset",
    "region": "held out",
    "encoding": "code",
    "model": "model",
    "depth": "depth",
    "epochs": "epochs",
}
MAX_FLAGS = 2  # that replace the name which the user gave to a run
CLOSE = 0.05  # numbers that differ less are "about equal"
WEAK = 0.3  # smaller correlations support no conclusion
# Share of the way from the R² of the true images to 1, from which outputs are
# called superpositions, mostly or in part.
MOSTLY, PARTLY = 0.5, 0.1
MAX_NAMED = 3
UNTRAINED = "before training"  # among rows of superposition scores


def name_runs(configs: Sequence[RunConfig]) -> list[tuple[str, str]]:
    """Returns the names of runs, as `depth 2, seed 0`, and of settings."""
    flags = [config.identity() for config in configs]
    own = [(config.run_name, config.run_name) for config in configs]
    others = [name for name in flags[0] if name not in IGNORED]
    varied = [n for n in others if len({str(f.get(n)) for f in flags}) > 1]
    is_trial = all(is_hash(config.run_name) for config in configs)
    if len(varied) > MAX_FLAGS and not is_trial:
        return own
    chosen = choose_flags([{n: f.get(n) for n in varied} for f in flags])
    settings = [make_label(f, chosen) for f in flags]
    if len({*settings}) < len(flags):
        chosen = [*chosen, "seed"]
    names = [make_label(f, chosen) for f in flags]
    if len({*map(to_file_name, names)}) < len(names):
        return own
    return [*zip(names, settings, strict=True)]


def is_hash(name: str) -> bool:
    """Returns True for the name of a trial of a sweep."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def to_file_name(name: str) -> str:
    """Returns a name with no characters that a file name cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_")


def describe_common(settings: Sequence[Mapping[str, Any]]) -> str:
    """Describes data, held-out region and model that all settings share."""
    parts = []
    for flag, word in SUBTITLE.items():
        value, *others = dict.fromkeys(s.get(flag) for s in settings)
        if value in (None, "") or others:
            continue
        words = f"{value} {word}" if flag == "epochs" else f"{word} {value}"
        parts.append(words)
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _tell_runs(say: Callable[..., str]) -> Callable[..., str]:
    """Makes one line on several runs from a function of the rows of one."""

    @functools.wraps(say)
    def describe(rows: Sequence[Row], *words: str) -> str:
        runs: dict[str, list[Row]] = {}
        for row in rows:
            runs.setdefault(row["run"], []).append(row)
        said = {name: say(own, *words) for name, own in runs.items()}
        if len(runs) == 1:
            (text,) = said.values()
            return f"{text[0].upper()}{text[1:]}." if text else ""
        named = [f"{name}: {text}" for name, text in said.items() if text]
        rest = len(named) - MAX_NAMED
        more = f"; and {rest} more" if rest > 0 else ""
        return f"{'; '.join(named[:MAX_NAMED])}{more}." if named else ""

    return describe


@_tell_runs
def describe_course(rows: Sequence[Row], column: str, name: str) -> str:
    """Describes how a number changes from the first stage to the last."""
    known = [row for row in rows if row.get(column) is not None]
    if len(known) < 2:
        return ""
    first, last = known[0], known[-1]
    start, end = first[column], last[column]
    least = min(known, key=lambda row: row[column])
    if abs(end - start) <= CLOSE * max(abs(start), abs(end)):
        course = f"is about {end:.2f} in the first stage and the last"
    else:
        verb = "rises" if end > start else "falls"
        places = f"({first['stage']}) to {end:.2f} ({last['stage']})"
        course = f"{verb} from {start:.2f} {places}"
    if least[column] < min(start, end) - CLOSE * abs(min(start, end)):
        course += f", and is least in {least['stage']} ({least[column]:.2f})"
    return f"{name} {course}"


@_tell_runs
def describe_superposition(rows: Sequence[Row]) -> str:
    """Describes if outputs are sums of memories, at far points if known."""
    r2s: dict[str, float | None] = {}
    for points in ("far", "all"):
        r2s = {
            row["OOD outputs"]: row["superposition"]
            for row in rows
            if row["points"] == points
        }
        model, truth = r2s.get("model"), r2s.get("truth")
        if model is not None and truth is not None:
            break
    else:
        return "no held-out output is bright enough to be scored"
    share = (model - truth) / max(1 - truth, 1e-9)
    before = r2s.get(UNTRAINED)
    r2 = f"R² {model:.2f}; truth {truth:.2f}"
    r2 += "" if before is None else f"; before training {before:.2f}"
    if not share >= PARTLY:
        what = "are no more superpositions than the true images are"
        return f"held-out outputs {what} ({r2})"
    part = "mostly" if share >= MOSTLY else "in part"
    said = f"held-out outputs can {part} be written as sums of training outputs"
    said += f" that share a factor value ({r2})"
    # Before training, R² can be as high (claim C4).
    if before is None:
        said += "; the R² of an untrained network can be as high, so this alone"
        return f"{said} shows no memorization"
    is_as_high = before > model - CLOSE
    return said + "; this alone shows no memorization" * is_as_high


@_tell_runs
def describe_kernels(rows: Sequence[Row]) -> str:
    """Describes which of the two ideal kernels the outputs resemble."""
    row = next((r for r in rows if r["similarity"] == "cosine"), {})
    sum_, joint = row.get("factorized"), row.get("conjunctive")
    if sum_ is None or joint is None:
        return ""
    if max(sum_, joint) < CLOSE:
        which = "neither ideal kernel"
    elif abs(sum_ - joint) < CLOSE:
        which = "both ideal kernels alike"
    else:
        name = "factorized" if sum_ > joint else "conjunctive"
        which = f"the {name} kernel more"
    numbers = f"(alignment {sum_:.2f} factorized, {joint:.2f} conjunctive)"
    return f"the outputs resemble {which} {numbers}"


@_tell_runs
def describe_gaps(rows: Sequence[Row]) -> str:
    """Describes if outputs in a gap are interpolations of its edges."""
    pairs = [(row["interpolation_r2"], row["truth_r2"]) for row in rows]
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return ""
    output, truth = (sum(v) / len(v) for v in zip(*pairs, strict=True))
    how, than = "as much", "as"
    if output > truth + CLOSE:
        how, than = "more", "than"
    elif output < truth - CLOSE:
        how, than = "less", "than"
    return (
        f"outputs in the gap are {how} a linear combination of the edge images "
        f"{than} the true images are (R² {output:.2f}; truth {truth:.2f})"
    )


@_tell_runs
def describe_border(rows: Sequence[Row]) -> str:
    """Describes if the OOD error rises with the distance to ID."""
    rho = rows[0]["border_rank_correlation"]
    if rho is None:
        return ""
    how = "rises with" if rho > 0 else "falls with"
    how = "hardly depends on" if abs(rho) < WEAK else how
    rank = f"(rank correlation {rho:.2f})"
    return f"the OOD error {how} the distance to ID {rank}"


@_tell_runs
def describe_ranks(rows: Sequence[Row]) -> str:
    """Describes the effective ranks of embeddings, by factor."""
    ranks = [
        f"{row['factor']} {row['effective_rank']:.1f}"
        for row in rows
        if row.get("effective_rank") is not None
    ]
    return f"effective rank of {', '.join(ranks)}" if ranks else ""
