"""Planted evidence: runs whose numbers make a claim true, false or open."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tfcomp.config.run_flags import parse_config
from tfcomp.studies.claims.all_claims import CLAIMS
from tfcomp.studies.claims.claim import ClaimResult
from tfcomp.studies.claims.controls import plant_study
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.threshold_studies import ThresholdStudy

SEEDS = range(4)
STAGES = ("code", "stage_0", "stage_1", "stage_2", "image")
STRIPED = "stripes_and_bumps.flags"
# Settings that go together, by name: a flagfile and flags each.
SETTINGS = {
    "cnns": (("donut.flags",), ("ramp.flags",)),
    "mlps": (("mlp.flags",), ("mlp.flags", "--encoding=ramp", "--epochs=100")),
    "striped": tuple((STRIPED, f"--num_bumps={n}") for n in (0, 10, 100)),
}
# How far from its rule a number is planted: well inside, well outside, or on
# both sides of the bound, one seed here and one there.
KINDS = ("reproduced", "refuted", "undecided")
_numbers = itertools.count()


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


def make_runs(
    name: str, *flags: str, seeds: Iterable[int] = range(3), **numbers: Any
) -> list[Run]:
    """Runs of some settings, or of a flagfile, at every seed."""
    return [
        make_run(flagfile, seed, *own, *flags, **numbers)
        for flagfile, *own in SETTINGS.get(name, [(name,)])
        for seed in seeds
    ]


def plant_seed(kind: str, seed: int) -> dict[str, list[Run]]:
    """Runs of one seed, by the claim that they decide."""
    make = functools.partial(make_runs, seeds=[seed])

    def plant(bound: float, gap: float = 0.2) -> float:
        """A number above a bound, below it, or on either side."""
        noise = 0.01 * gap * seed
        if kind == "undecided":
            return bound + gap * (-1) ** seed + noise
        return bound + (gap + noise) * (1 if kind == "reproduced" else -1)

    def slope(amount: float) -> list[float]:
        """Numbers per stage that rise (amount > 0) or fall."""
        return [0.5 + amount * place for place in range(len(STAGES))]

    def make_layers(values: list[float], *names: str) -> dict:
        return {"layers": dict.fromkeys(names, values)}

    def drop(height: float) -> dict:
        values = [1.0, 1.0, 0.99, 0.99 - height, 0.98 - height]
        return make_layers(values, "factorization")

    def spread(value: float) -> dict[str, list[float]]:
        """A spread of log-volume at every stage but the code."""
        names = ("log_volume_sd", "log_volume_sd_id", "log_volume_sd_ood")
        return dict.fromkeys(names, [9.0, *[value] * 4])

    falling = slope(-0.1 * plant(0))
    gap = plant(0)
    curve = {
        "curve_values": [0.0, 180.0, 360.0],
        "curve_mse": [1e-4, 1e-2 * (seed + 1), 1e-4],
    }
    jumps = [1.0, 0.9, 2 - plant(0, 1.0), 0.5, 0.5]
    return {
        "C1": [
            *make("cnns", relative=plant(0.5)),
            *make("cnns", "--region=corner:14", relative=plant(0.5)),
            *make("one_hot.flags", relative=plant(0.5)),
            *make("positional.flags", relative=plant(0.5)),
        ],
        "C2": make("mlps", relative=plant(0.5)),
        "C3": make(
            "donut.flags",
            border_rank_correlation=plant(0),
            border_relative_mse=[0.2, 0.5 + 0.1 * seed, 1.1],
        ),
        "C4": make(
            "cnns",
            superposition_r2=plant(0.5),
            conjunctive_r2=plant(0.5) - 0.2,
            superposition_far_r2=0.6,
            conjunctive_far_r2=0.1,
        ),
        "C5": make(
            "cnns",
            alignment_factorized=0.3 + plant(0),
            alignment_conjunctive=0.3,
            alignment_constant=0.0,
            alignment_factorized_smooth=0.6,
            alignment_radial=0.4,
        ),
        "C6": make(
            "cnns",
            **make_layers(falling, "factorization", "cosine_factorization"),
        ),
        "C7": [
            *make("ramp.flags", "--depth=2", **drop(0.1 + plant(0, 0.05))),
            *make("ramp.flags", "--depth=4", **drop(0.3)),
            *make("ramp.flags", "--depth=6", **drop(0.1)),
        ],
        "C8": make(
            "cnns", **make_layers(falling, "probe_r2_id", "probe_r2_ood")
        ),
        # Wider than the code's at one stage, narrower at the next: without
        # sizes it would cancel. The code's own -0.15 is no warp.
        "C9": make(
            "cnns",
            log_volume_sd_id=[0.65] * 5,
            log_volume_sd_ood=[
                0.5 + (-1) ** place * (0.1 if plant(0) > 0 else 0) * place
                for place in range(5)
            ],
        ),
        # The code has 0.09 of its own, which all stages inherit.
        "C10": [
            *make("cnns", log_volume_difference=[0.09, *[-0.41] * 4]),
            *make(
                "mlps", log_volume_difference=[0.09, *[0.09 + plant(0.1)] * 4]
            ),
        ],
        "C11": [
            run
            for region in ("corner:12", "square:8-23")
            for run in make(
                "low_rank.flags",
                f"--region={region}",
                relative=0.1 - plant(0, 0.05),
                scores={"ood": {"position_accuracy": 0.99}},
            )
        ],
        "C12": [
            run
            for place, file in enumerate(("_none", "_entropy", "_variance", ""))
            for run in make(
                f"low_rank{file}.flags",
                relative=10.0 ** -(place * plant(0, 0.8)),
                fit=1e-3 * (place + 1),
            )
        ],
        "C13": [
            *make("low_rank_none.flags", **spread(0.5 + plant(0))),
            *make("low_rank.flags", **spread(0.5)),
        ],
        "C14": make(
            "stripes.flags",
            scores={
                "ood": {"position_accuracy": plant(0.95, 0.04)},
                "ood_plus": {"relative_mse": 0.5},
            },
        ),
        "C15": [
            *make(STRIPED, "--num_bumps=0", relative=0.5 * 10 ** (2 * gap)),
            *make(STRIPED, "--num_bumps=10", relative=0.5 * 10**gap),
            *make(STRIPED, "--num_bumps=100", relative=0.5 - gap),
        ],
        # Stripes are trained for as long as bumps alone.
        "C17": [
            *make(
                "corner.flags", "--polarity=bright", **spread(0.5 + plant(0))
            ),
            *make(
                STRIPED, "--epochs=50", "--steps_per_epoch=63", **spread(0.5)
            ),
        ],
        "C18": make(
            "striped",
            additive_share=falling,
            additive_share_weighted=slope(-0.1),
        ),
        "C19": make(
            "rotated_mnist.flags",
            edge_r2=plant(0.8, 0.1),
            edge_r2_min=0.75,
            edge_linear_r2=0.9,
            edge_truth_r2=0.6,
            **curve,
        ),
        "C20": make(
            "rotated_mnist.flags", gap_max_speed=jumps, gap_max_turning=jumps
        ),
    }


@functools.cache
def plant_runs(kind: str) -> dict[str, tuple[Run, ...]]:
    """Runs of all seeds, setting by setting, by the claim they decide."""
    seeds = [plant_seed(kind, seed) for seed in SEEDS]
    return {
        name: tuple(
            itertools.chain(*zip(*(runs[name] for runs in seeds), strict=True))
        )
        for name in seeds[0]
    }


def make_study(
    name: str, *flags: str, shift: float = 0.0, seeds: int = 3, **sizes: Any
) -> ThresholdStudy:
    """A study whose slopes are 3 and 1, or that much more."""
    study = plant_study(
        " ".join(["threshold.flags", *flags]),
        {"bumps": 3 + shift, "stripes_and_bumps": 1 + shift},
        num_seeds=seeds,
        **({"sizes": (16, 24, 32)} | sizes),
    )
    return dataclasses.replace(study, path=Path(f"/logs/{name}"))


def plant_claim(name: str, kind: str) -> Evidence:
    """Evidence on one claim, by its name and the verdict it should have."""
    if name != "C16":
        return Evidence(plant_runs(kind)[name])
    shift = {"reproduced": 0.0, "refuted": -1.5, "undecided": 0.5}[kind]
    return Evidence(studies=(make_study("study", shift=shift),))


def plant_all_claims() -> Evidence:
    """Evidence on all claims at once, of all three kinds."""
    runs = itertools.chain(
        *(plant_claim(f"C{n}", KINDS[n % 3]).runs for n in range(1, 21))
    )
    studies = plant_claim("C16", "undecided").studies
    return Evidence(merge(runs), studies, ("a note",))


def judge_runs(name: str, *groups: Iterable[Run]) -> ClaimResult:
    """Judges a claim, by its name, by lists of runs."""
    runs = tuple(itertools.chain(*groups))
    return CLAIMS[int(name[1:]) - 1].judge(Evidence(runs))


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
