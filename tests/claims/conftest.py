"""Planted evidence: runs whose numbers make a claim true, false or open."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
import pytest

from tfcomp.claims import CLAIMS
from tfcomp.claims.claim import ClaimResult
from tfcomp.claims.claim import judge_claim
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.flag_text import parse_run_flags
from tfcomp.claims.threshold_studies import ThresholdStudy
from tfcomp.config.flagfiles import expand_flagfiles
from tfcomp.config.run_flags import parse_config

SEEDS = range(4)
STAGES = ("code", "stage_0", "stage_1", "stage_2", "image")
# Settings: a flagfile and flags.
CNNS = (("donut.flags",), ("ramp.flags",))
MLPS = (("mlp.flags",), ("mlp.flags", "--encoding=ramp", "--epochs=100"))
STRIPED = tuple(
    ("stripes_and_bumps.flags", f"--num_bumps={n}") for n in (0, 10, 100)
)
_numbers = itertools.count()

# How far from its rule a number is planted: well inside, well outside, or on
# both sides of the bound, one seed here and one there.
KINDS = ("reproduced", "refuted", "undecided")


def plant(bound: float, kind: str, seed: int, gap: float = 0.2) -> float:
    """A number that is above a bound, below it, or on either side."""
    noise = 0.01 * gap * seed
    if kind == "reproduced":
        return bound + gap + noise
    if kind == "refuted":
        return bound - gap - noise
    return bound + gap * (-1) ** seed + noise


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
    arguments = [f"--flagfile={flagfile}", *flags, f"--seed={seed}"]
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
        Path(f"/logs/sweep/trials/{next(_numbers):04d}"),
        parse_config(arguments).to_flags(),
        metrics,
        {"stages": list(STAGES), "version": "planted", **measures},
        {"tensorflow": "2.21.0"},
    )


def plant_runs(
    settings: Iterable[tuple[str, ...]], numbers: Callable[[int], dict]
) -> list[Run]:
    """Runs of some settings, a flagfile and flags each, at every seed."""
    return [
        make_run(flagfile, seed, *flags, **numbers(seed))
        for flagfile, *flags in settings
        for seed in SEEDS
    ]


def slope(amount: float) -> list[float]:
    """Numbers per stage that rise (amount > 0) or fall."""
    return [0.5 + amount * place for place in range(len(STAGES))]


def fall(kind: str, seed: int) -> list[float]:
    """Numbers per stage that fall, rise, or either."""
    return slope(-0.1 * plant(0, kind, seed))


def spread(value: float) -> dict[str, list[float]]:
    """A spread of log-volume at every stage but the code."""
    names = ("log_volume_sd", "log_volume_sd_id", "log_volume_sd_ood")
    return dict.fromkeys(names, [9.0, *[value] * 4])


def plant_c1(kind: str) -> list[Run]:
    files = ("donut.flags", "ramp.flags", "one_hot.flags", "positional.flags")
    settings = [(file,) for file in files]
    settings += [(file, "--region=corner:14") for file in files[:2]]
    return plant_runs(settings, lambda s: {"relative": plant(0.5, kind, s)})


def plant_c2(kind: str) -> list[Run]:
    return plant_runs(MLPS, lambda s: {"relative": plant(0.5, kind, s)})


def plant_c3(kind: str) -> list[Run]:
    return plant_runs(
        CNNS[:1],
        lambda seed: {
            "border_rank_correlation": plant(0, kind, seed),
            "border_relative_mse": [0.2, 0.5 + 0.1 * seed, 1.1],
        },
    )


def plant_c4(kind: str) -> list[Run]:
    return plant_runs(
        CNNS,
        lambda seed: {
            "superposition_r2": plant(0.5, kind, seed),
            "conjunctive_r2": plant(0.5, kind, seed) - 0.2,
            "superposition_far_r2": 0.6,
            "conjunctive_far_r2": 0.1,
        },
    )


def plant_c5(kind: str) -> list[Run]:
    return plant_runs(
        CNNS,
        lambda seed: {
            "alignment_factorized": 0.3 + plant(0, kind, seed),
            "alignment_conjunctive": 0.3,
            "alignment_constant": 0.0,
            "alignment_factorized_smooth": 0.6,
            "alignment_radial": 0.4,
        },
    )


def plant_c6(kind: str) -> list[Run]:
    names = ("factorization", "cosine_factorization")
    return plant_runs(
        CNNS, lambda s: {"layers": dict.fromkeys(names, fall(kind, s))}
    )


def plant_c7(kind: str) -> list[Run]:
    def at(depth: int, drop: Callable[[int], float]) -> list[Run]:
        def numbers(seed: int) -> dict:
            low = 0.99 - drop(seed)
            values = [1.0, 1.0, 0.99, low, low - 0.01]
            return {"layers": {"factorization": values}}

        return plant_runs([("ramp.flags", f"--depth={depth}")], numbers)

    shallow = at(2, lambda seed: 0.1 + plant(0, kind, seed, 0.05))
    return shallow + at(4, lambda seed: 0.3) + at(6, lambda seed: 0.1)


def plant_c8(kind: str) -> list[Run]:
    names = ("probe_r2_id", "probe_r2_ood")
    return plant_runs(
        CNNS, lambda s: {"layers": dict.fromkeys(names, fall(kind, s))}
    )


def plant_c9(kind: str) -> list[Run]:
    def numbers(seed: int) -> dict:
        # Wider than the code's at one stage, narrower at the next: without
        # sizes it would cancel. The code's own -0.15 is no warp.
        step = {"reproduced": 0.1, "refuted": 0.0}.get(kind, 0.1 * (seed % 2))
        warp = [0.5 + (-1) ** place * step * place for place in range(5)]
        return {"log_volume_sd_id": [0.65] * 5, "log_volume_sd_ood": warp}

    return plant_runs(CNNS, numbers)


def plant_c10(kind: str) -> list[Run]:
    def numbers(value: float) -> dict:
        # The code has 0.09 of its own, which all stages inherit.
        return {"log_volume_difference": [0.09, *[0.09 + value] * 4]}

    cnns = plant_runs(CNNS, lambda seed: numbers(-0.5 - 0.01 * seed))
    return cnns + plant_runs(MLPS, lambda s: numbers(plant(0.1, kind, s)))


def plant_c11(kind: str) -> list[Run]:
    return plant_runs(
        [
            ("low_rank.flags", f"--region={region}")
            for region in ("corner:12", "square:8-23")
        ],
        lambda seed: {
            "relative": 0.1 - plant(0, kind, seed, 0.05),
            "scores": {"ood": {"position_accuracy": 0.99}},
        },
    )


def plant_c12(kind: str) -> list[Run]:
    return [
        make_run(
            f"low_rank{file}.flags",
            seed,
            relative=10.0 ** -(place * plant(0, kind, seed, 0.8)),
            fit=1e-3 * (place + 1),
        )
        for place, file in enumerate(("_none", "_entropy", "_variance", ""))
        for seed in SEEDS
    ]


def plant_c13(kind: str) -> list[Run]:
    return [
        *plant_runs(
            [("low_rank_none.flags",)],
            lambda seed: spread(0.5 + plant(0, kind, seed)),
        ),
        *plant_runs([("low_rank.flags",)], lambda seed: spread(0.5)),
    ]


def plant_c14(kind: str) -> list[Run]:
    return plant_runs(
        [("stripes.flags",)],
        lambda seed: {
            "scores": {
                "ood": {"position_accuracy": plant(0.95, kind, seed, 0.04)},
                "ood_plus": {"relative_mse": 0.5},
            }
        },
    )


def plant_c15(kind: str) -> list[Run]:
    def numbers(place: int, seed: int) -> dict:
        distance = plant(0, kind, seed)
        if place == 2:
            return {"relative": 0.5 - distance}
        return {"relative": 0.5 * 10 ** ((2 - place) * distance)}

    return [
        run
        for place, setting in enumerate(STRIPED)
        for run in plant_runs([setting], functools.partial(numbers, place))
    ]


def make_threshold_study(
    name: str,
    *flags: str,
    shift: float = 0.0,
    seeds: int = 3,
    sizes: Sequence[int] = (16, 24, 32),
) -> ThresholdStudy:
    """A study whose slopes are 3 and 1, or that much more."""
    exponents = {"bumps": 3 + shift, "stripes_and_bumps": 1 + shift}
    shared = {"region": "corner", "criterion": "position_accuracy"}
    lines = expand_flagfiles(["--flagfile=threshold.flags"])
    thresholds = [
        shared
        | {
            "kind": kind,
            "grid_size": float(size),
            "seed": float(seed),
            "num_examples": size**exponent * (1 + 0.1 * seed),
            "reached": True,
        }
        for kind, exponent in exponents.items()
        for size in sizes
        for seed in range(seeds)
    ]
    slopes = [
        shared
        | {
            "kind": kind,
            "quantity": "num_examples",
            "slope": exponent,
            "low": exponent - 0.2,
            "high": exponent + 0.2,
            "not_reached": 0.0,
            "note": None,
        }
        for kind, exponent in exponents.items()
    ]
    return ThresholdStudy(
        Path(f"/logs/{name}"),
        pandas.DataFrame(thresholds),
        pandas.DataFrame(slopes),
        parse_run_flags("\n".join([*lines, *flags]))[0],
    )


def plant_c16(kind: str) -> list[ThresholdStudy]:
    shift = {"reproduced": 0.0, "refuted": -1.5, "undecided": 0.5}[kind]
    return [make_threshold_study("threshold", shift=shift)]


def plant_c17(kind: str) -> list[Run]:
    # Stripes are trained for as long as bumps alone.
    striped = "stripes_and_bumps.flags", "--epochs=50", "--steps_per_epoch=63"
    return [
        *plant_runs(
            [("corner.flags", "--polarity=bright")],
            lambda seed: spread(0.5 + plant(0, kind, seed)),
        ),
        *plant_runs([striped], lambda seed: spread(0.5)),
    ]


def plant_c18(kind: str) -> list[Run]:
    return plant_runs(
        STRIPED,
        lambda seed: {
            "additive_share": fall(kind, seed),
            "additive_share_weighted": slope(-0.1),
        },
    )


def plant_c19(kind: str) -> list[Run]:
    return plant_runs(
        [("rotated_mnist.flags",)],
        lambda seed: {
            "edge_r2": plant(0.8, kind, seed, 0.1),
            "edge_r2_min": 0.75,
            "edge_linear_r2": 0.9,
            "edge_truth_r2": 0.6,
            "curve_values": [0.0, 180.0, 360.0],
            "curve_mse": [1e-4, 1e-2 * (seed + 1), 1e-4],
        },
    )


def plant_c20(kind: str) -> list[Run]:
    names = ("gap_max_speed", "gap_max_turning")

    def numbers(seed: int) -> dict:
        ratio = 2 - plant(0, kind, seed, 1.0)
        return dict.fromkeys(names, [1.0, 0.9, ratio, 0.5, 0.5])

    return plant_runs([("rotated_mnist.flags",)], numbers)


@pytest.fixture(scope="session")
def plant_claim() -> Callable[[str, str], Evidence]:
    """Evidence on one claim, by its name and the verdict it should have."""

    def make(name: str, kind: str) -> Evidence:
        if name == "C16":
            return Evidence(studies=tuple(plant_c16(kind)))
        return Evidence(tuple(globals()[f"plant_{name.lower()}"](kind)))

    return make


@pytest.fixture(scope="session")
def make_planted_run() -> Callable[..., Run]:
    """Builds a run from a flagfile, a seed, flags and numbers."""
    return make_run


@pytest.fixture(scope="session")
def judge_runs() -> Callable[..., ClaimResult]:
    """Judges a claim, by its name, by lists of runs."""

    def judge(name: str, *groups: Iterable[Run]) -> ClaimResult:
        runs = tuple(run for group in groups for run in group)
        return judge_claim(CLAIMS[int(name[1:]) - 1], Evidence(runs))

    return judge


@pytest.fixture(scope="session")
def change_scores() -> Callable[..., list[Run]]:
    """Gives runs other ID scores, each a function of the seed."""

    def change(runs: Iterable[Run], **scores: Callable[[int], float]) -> list:
        changed = []
        for run in runs:
            new = {name: score(run.seed) for name, score in scores.items()}
            metrics = run.metrics | {"id": run.metrics["id"] | new}
            changed.append(dataclasses.replace(run, metrics=metrics))
        return changed

    return change


def merge(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Joins the numbers of runs that are the same experiment."""
    merged: dict[str, Run] = {}
    for run in runs:
        key = repr((sorted(run.setting.items()), run.seed))
        other = merged.get(key, run)
        layers = {
            stage: other.metrics["layers"][stage] | run.metrics["layers"][stage]
            for stage in STAGES
        }
        merged[key] = dataclasses.replace(
            other,
            measures=other.measures | run.measures,
            metrics=other.metrics | {"layers": layers},
        )
    return tuple(merged.values())


@pytest.fixture(scope="session")
def everything(plant_claim) -> Evidence:
    """Evidence on all claims at once, of all three kinds."""
    runs = [
        run
        for number in range(1, 21)
        for run in plant_claim(f"C{number}", KINDS[number % 3]).runs
    ]
    studies = plant_claim("C16", "undecided").studies
    return Evidence(merge(runs), studies, ("a note",))


@pytest.fixture(scope="session")
def make_study() -> Callable[..., ThresholdStudy]:
    """Builds a threshold study from a name, flags, slopes and seeds."""
    return make_threshold_study
