"""Planted evidence: runs whose numbers make a claim true, false or open."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reproduction.claims.all_claims import CLAIMS
from reproduction.claims.controls import Control, Kind, plant_run, plant_study
from reproduction.claims.evidence import FIRST_SEED, Evidence, ThresholdStudy
from reproduction.claims.judgement import ClaimResult
from reproduction.groups import Record, group_records

Run = Record
BY_NAME = {claim.name: claim for claim in CLAIMS}
# How many of ten seeds of an undecided claim are of the positive kind.
NUM_GOOD = {"C9": 2, "C13": 2}
DONUT_SEARCH = ("--polarity=dark", "--depth=4", "--learning_rate=1e-3")
STRIPED = "stripes_and_bumps.flags"
LOW_RANK = "low_rank{}.flags --decay=linear --decay_share=0.2"
KINDS = ("reproduced", "refuted", "undecided")


@dataclasses.dataclass(frozen=True)
class Planted:
    """Runs and studies, which `gather` makes evidence of."""

    runs: tuple[Run, ...] = ()
    studies: tuple[ThresholdStudy, ...] = ()
    notes: tuple[str, ...] = ()

    def gather(self) -> Evidence:
        groups = tuple(group_records(self.runs))
        return Evidence(groups, self.studies, self.notes)

    def move(self, shift: int) -> "Planted":
        """The same numbers at other seeds."""
        studies = []
        for study in self.studies:
            table = study.thresholds
            table = table.assign(seed=table["seed"] + shift)
            studies.append(dataclasses.replace(study, thresholds=table))
        runs = [set_flags([run], seed=run.seed + shift)[0] for run in self.runs]
        return Planted(tuple(runs), tuple(studies))

    def __add__(self, other: "Planted") -> "Planted":
        return Planted(self.runs + other.runs, self.studies + other.studies)


def gather(*groups: Iterable[Run]) -> Evidence:
    """Evidence of lists of runs."""
    return Planted(tuple(itertools.chain(*groups))).gather()


def plant(
    numbers: Mapping[str, Any],
    *names: str,
    count: int = 10,
    spread: float = 1e-4,
) -> list[Run]:
    """Runs of some settings with numbers, both named as in `claims.toml`."""
    planted = {"spread": spread} | dict.fromkeys(names, numbers)
    runs = Control("planted", Kind.POSITIVE, planted).list_planted()[0]
    return [run for run in runs if run.seed < FIRST_SEED + count]


def make_run(
    flagfile: str,
    seed: int,
    *flags: str,
    relative: float = 0.8,
    fit: float = 0.003,
    layers: Mapping[str, list[float]] | None = None,
    **measures: Any,
) -> Run:
    """A run with scores, and numbers of stages and of the whole."""
    numbers = {"id/position_accuracy": 0.99, "ood/position_accuracy": 0.2}
    numbers |= {"id/relative_mse": fit, "ood/relative_mse": relative}
    numbers |= {"id/mse": fit / 250, "ood/mse": relative / 250}
    numbers |= {**(layers or {}), **measures}
    line = " ".join([flagfile, *flags])
    return plant_run(line, seed - FIRST_SEED, numbers, 1.0)


def plant_claim(name: str, kind: str) -> Planted:
    """Evidence by verdict: a positive, a negative, or seeds of either."""
    if name == "C16":
        shift = {"reproduced": 0.0, "refuted": -1.5, "undecided": 0.5}[kind]
        return Planted(studies=make_studies(shift))
    good, bad = (
        next(c for c in BY_NAME[name].controls if c.kind is wanted)
        for wanted in (Kind.POSITIVE, Kind.NEGATIVE)
    )
    if kind != "undecided":
        chosen = good if kind == "reproduced" else bad
        return Planted(tuple(chosen.list_planted()[0]))
    is_good = range(FIRST_SEED, FIRST_SEED + NUM_GOOD.get(name, 5))
    pairs = zip(good.list_planted()[0], bad.list_planted()[0], strict=True)
    mixed = (a if a.seed in is_good else b for a, b in pairs)
    return Planted(tuple(mixed))


def make_study(
    name: str, *flags: str, shift: float = 0.0, seeds: int = 3, **sizes: Any
) -> ThresholdStudy:
    """A study whose slopes are 3 and 1, or that much more."""
    study = plant_study(
        " ".join(["threshold.flags", *flags]),
        {"bumps": 3 + shift, "stripes_and_bumps": 1 + shift},
        seeds,
        **({"sizes": (16, 20, 24, 32)} | sizes),
    )
    return dataclasses.replace(study, path=Path(f"/logs/{name}"))


def make_studies(shift: float = 0.0) -> tuple:
    """A study in each of the two settings of C16."""
    small = make_study("study", shift=shift)
    return small, make_study("donut", *DONUT_SEARCH, shift=shift)


def judge_runs(name: str, *groups: Iterable[Run]) -> ClaimResult:
    """Judges a claim, by its name, by lists of runs, as if it were new."""
    return judge_evidence(name, gather(*groups))


def judge_evidence(name: str, evidence: Evidence | Planted) -> ClaimResult:
    """Judges a claim as if it were new, which could strengthen its verdict."""
    if isinstance(evidence, Planted):
        evidence = evidence.gather()
    plain = {"history": (), "doubt": "", "controls": ()}
    return dataclasses.replace(BY_NAME[name], **plain).judge(evidence)


def set_flags(runs: Iterable[Run], **flags: Any) -> list[Run]:
    """The runs as if trained with other flags."""
    return [run._replace(flags=run.flags | flags) for run in runs]


def set_measures(runs: Iterable[Run], **measures: Any) -> list[Run]:
    """The runs with other measures, or more of them."""
    return [run._replace(measures=run.measures | measures) for run in runs]


def set_scores(runs: Iterable[Run], subset: str, **scores: Any) -> list[Run]:
    """The runs with other scores, each a number or a function of the seed."""
    changed = []
    for run in runs:
        new = {k: v(run.seed) if callable(v) else v for k, v in scores.items()}
        old = run.metrics.get(subset, {})
        metrics = run.metrics | {subset: {**old, **new}}
        changed.append(run._replace(metrics=metrics))
    return changed


def split_runs(
    runs: Iterable[Run], flag: str, value: Any
) -> tuple[list[Run], list[Run]]:
    """Runs with the value of a flag, and all others."""
    chosen = [run for run in runs if run.flags[flag] == value]
    return chosen, [run for run in runs if run not in chosen]
