"""Planted evidence: runs whose numbers make a claim true, false or open."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tfcomp.studies.claims.all_claims import CLAIMS
from tfcomp.studies.claims.controls import Control, Kind, plant_study
from tfcomp.studies.claims.evidence import FIRST_SEED, Evidence, ThresholdStudy
from tfcomp.studies.claims.judgement import ClaimResult
from tfcomp.tables.groups import Record, group_records
from tfcomp.tables.selection import read_setting

BY_NAME = {claim.name: claim for claim in CLAIMS}
# How many of ten seeds of an undecided claim are of the positive kind.
NUM_GOOD = {"C9": 2, "C13": 2}
DONUT_SEARCH = ("--polarity=dark", "--depth=4", "--learning_rate=1e-3")
STAGES = ("code", "stage_0", "stage_1", "stage_2", "image")
STRIPED = "stripes_and_bumps.flags"
# Settings that go together, by name: a flagfile and flags each.
SETTINGS = {
    "cnns": (("donut.flags",), ("ramp.flags",)),
    "mlps": (("mlp.flags",), ("mlp.flags", "--encoding=ramp", "--epochs=100")),
    "striped": tuple((STRIPED, f"--num_bumps={n}") for n in (0, 10, 100)),
}
KINDS = ("reproduced", "refuted", "undecided")


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run, as if read from its files."""

    flags: dict[str, Any]
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)
    measures: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def seed(self) -> int:
        return self.flags["seed"]


@dataclasses.dataclass(frozen=True)
class Planted:
    """Runs and studies, which `gather` makes evidence of."""

    runs: tuple[Run, ...] = ()
    studies: tuple[ThresholdStudy, ...] = ()
    notes: tuple[str, ...] = ()

    def gather(self) -> Evidence:
        records = [Record(r.flags, r.metrics, r.measures) for r in self.runs]
        groups = tuple(group_records(records))
        return Evidence(groups, self.studies, self.notes)


def gather(*groups: Iterable[Run]) -> Evidence:
    """Evidence of lists of runs."""
    return Planted(tuple(itertools.chain(*groups))).gather()


def make_run(
    flagfile: str,
    seed: int,
    *flags: str,
    relative: float = 0.8,
    fit: float = 0.003,
    scores: dict[str, dict] | None = None,
    layers: dict[str, list[float]] | None = None,
    **measures: Any,
) -> Run:
    """A finished run with some numbers, as if read from its files."""
    metrics: dict[str, Any] = {
        "id": {
            "relative_mse": fit,
            "mse": fit / 250,
            "position_accuracy": 0.99,
        },
        "ood": {
            "relative_mse": relative,
            "mse": relative / 250,
            "position_accuracy": 0.2,
            "num_peaks": 1.4,
        },
        "layers": {
            stage: {name: values[i] for name, values in (layers or {}).items()}
            for i, stage in enumerate(STAGES)
        },
        "train": {"epochs": 50, "seconds": 100.0, "examples_per_second": 1.0},
    }
    for subset, numbers in (scores or {}).items():
        metrics.setdefault(subset, {}).update(numbers)
    return Run(
        read_setting(" ".join([flagfile, *flags])) | {"seed": seed},
        metrics,
        {"stages": list(STAGES), "version": "planted", **measures},
    )


def make_runs(
    name: str, *flags: str, seeds: Iterable[int] = range(3), **numbers: Any
) -> list[Run]:
    """Runs of some settings, or of a flagfile, at every seed."""
    return [
        make_run(flagfile, seed, *own, *flags, **numbers)
        for flagfile, *own in SETTINGS.get(name, [(name,)])
        for seed in seeds
    ]


def plant_claim(name: str, kind: str) -> Planted:
    """Evidence on one claim, by its name and the verdict it should have.

    The first planted positive of the claim, its first planted negative, or,
    seed by seed, some of the one and some of the other.
    """
    if name == "C16":
        shift = {"reproduced": 0.0, "refuted": -1.5, "undecided": 0.5}[kind]
        return Planted(studies=make_studies(shift))
    good, bad = (
        plant_control(
            next(c for c in BY_NAME[name].controls if c.kind is wanted)
        )
        for wanted in (Kind.POSITIVE, Kind.NEGATIVE)
    )
    if kind == "reproduced":
        return good
    if kind == "refuted":
        return bad
    is_good = range(FIRST_SEED, FIRST_SEED + NUM_GOOD.get(name, 5))
    mixed = [
        first if first.seed in is_good else second
        for first, second in zip(good.runs, bad.runs, strict=True)
    ]
    return Planted(tuple(mixed))


def plant_control(control: Control) -> Planted:
    """The planted runs and studies of a control."""
    records, studies = control.list_planted()
    return Planted(tuple(Run(*record) for record in records), tuple(studies))


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


def make_studies(shift: float = 0.0, **kwargs: Any) -> tuple:
    """A study in each of the two settings of C16."""
    return (
        make_study("study", shift=shift, **kwargs),
        make_study("donut", *DONUT_SEARCH, shift=shift, **kwargs),
    )


def plant_all_claims() -> Evidence:
    """Evidence on all claims at once, of all three kinds."""
    runs = itertools.chain(
        *(
            plant_claim(f"C{n}", KINDS[n % 3]).runs
            for n in range(1, 23)
            if n != 16
        )
    )
    return Planted(merge(runs), make_studies(0.5), ("a note",)).gather()


def judge_runs(name: str, *groups: Iterable[Run]) -> ClaimResult:
    """Judges a claim, by its name, by lists of runs, as if it were new."""
    return judge_evidence(name, gather(*groups))


def judge_evidence(name: str, evidence: Evidence | Planted) -> ClaimResult:
    """Judges a claim as if it were new, which could strengthen its verdict."""
    plain = {"history": (), "doubt": "", "controls": ()}
    claim = dataclasses.replace(BY_NAME[name], **plain)
    if isinstance(evidence, Planted):
        evidence = evidence.gather()
    return claim.judge(evidence)


def set_flags(runs: Iterable[Run], **flags: Any) -> list[Run]:
    """The runs as if trained with other flags."""
    return [dataclasses.replace(run, flags=run.flags | flags) for run in runs]


def set_measures(runs: Iterable[Run], **measures: Any) -> list[Run]:
    """The runs with other measures, or more of them."""
    return [
        dataclasses.replace(run, measures=run.measures | measures)
        for run in runs
    ]


def split_runs(
    runs: Iterable[Run], flag: str, value: Any
) -> tuple[list[Run], list[Run]]:
    """Runs with the value of a flag, and all others."""
    chosen = [run for run in runs if run.flags[flag] == value]
    return chosen, [run for run in runs if run not in chosen]


def change_scores(
    runs: Iterable[Run], **scores: Callable[[int], float]
) -> list[Run]:
    """Gives runs other ID scores, each a function of the seed."""
    changed = []
    for run in runs:
        new = {name: score(run.seed) for name, score in scores.items()}
        metrics = run.metrics | {"id": run.metrics["id"] | new}
        changed.append(dataclasses.replace(run, metrics=metrics))
    return changed


def merge(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Joins the numbers of runs that are the same experiment."""
    merged: dict[str, Run] = {}
    for run in runs:
        key = repr(sorted(run.flags.items()))
        other = merged.get(key, run)
        merged[key] = dataclasses.replace(
            other,
            measures=other.measures | run.measures,
            metrics={
                split: other.metrics.get(split, {}) | run.metrics.get(split, {})
                for split in {**other.metrics, **run.metrics}
            },
        )
    return tuple(merged.values())
