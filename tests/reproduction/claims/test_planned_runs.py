"""Claims read the runs of the flagfiles that are planned for them."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.profile import make_work
from reproduction import FLAGFILES
from reproduction.claims import (
    Evidence,
    c01_codes_do_not_compose,
    c02_mlps_do_not_compose,
    c04_memories,
    c05_kernel,
    c09_warp,
    c11_forced_rendering,
    c12_penalties,
    c14_stripes_compose,
    c15_bumps,
    c16_data_needed,
    c17_stripes_uniform,
    c18_units,
    c19_interpolation,
    c21_several_bumps,
    c22_hard_rendering,
    read_evidence,
)
from reproduction.figures.paper_figure import FigureRuns, read_figures
from reproduction.packing import write_pack
from tests.reproduction.claims.worlds import find, plant_run, plant_searches
from tfcomp.tables.read import Results

NEXT = FLAGFILES / "campaign_next"
PLANNED: dict[str, list[Any]] = {
    "01_donut_bump_next": [c04_memories, c09_warp, c21_several_bumps],
    "02_penalties_next": [c12_penalties],
    "03_donut_ramp_next": [c09_warp, c21_several_bumps],
    "04_donut_train_all_next": [c09_warp, c21_several_bumps],
    "05_all_mlp_next": [c02_mlps_do_not_compose],
    "08_center_none_next": [c11_forced_rendering],
    "09_stripes_plus_next": [c14_stripes_compose],
    "10_stripes_next": [c15_bumps, c18_units],
    "11_stripes_all_next": [c18_units],
    "12_bumps_alone_next": [c17_stripes_uniform],
    "13_stripes_long_next": [c17_stripes_uniform],
    "14_stripes_triple_next": [c15_bumps],
    "15_digit_all_next": [c19_interpolation],
    "16_hard_matrices_next": [c22_hard_rendering],
    "17_donut_shallow_next": [
        c01_codes_do_not_compose,
        c04_memories,
        c05_kernel,
    ],
}
# What `SEEDS` becomes when the runs are in, as evidence/plan.md says.
SEEDS = {
    c04_memories: range(300, 320),
    c12_penalties: (*range(200, 220), *range(400, 420)),
}
FIGURES = read_figures()


def plant_flagfile(name: str) -> Evidence:
    """Runs with the flags and seeds of a flagfile that fit."""
    work = make_work(name, [f"--flagfile={NEXT / name}.flags"])
    runs = []
    for trial in work.items:
        runs.append(plant_run(trial.config.to_flags(), trial.seed, {}))
    return Evidence(Results(runs))


@pytest.mark.parametrize("name", PLANNED)
def test_claims_select_planned_runs(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
):
    evidence = plant_flagfile(name)
    select = Evidence.select
    selected = set()

    def spy(self: Evidence, **flags: Any) -> Any:
        networks = select(self, **flags)
        selected.update(networks.runs.index)
        return networks

    monkeypatch.setattr(Evidence, "select", spy)
    for claim in PLANNED[name]:
        if claim in SEEDS:
            monkeypatch.setattr(claim, "SEEDS", SEEDS[claim])
        selected.clear()

        list(claim.judge(evidence))

        assert selected == set(evidence.runs.index)


@pytest.mark.parametrize(
    "name, figures",
    [
        ("06_cnn_depths_next", ["11", "12"]),
        ("07_mlp_depths_next", ["13", "14"]),
    ],
)
def test_figures_draw_planned_depths(name: str, figures: list[str]):
    evidence = plant_flagfile(name)

    drawn = set()
    for figure in figures:
        groups = FigureRuns(FIGURES[figure], evidence).groups
        for networks in groups.values():
            drawn.update(networks.runs.index)

    assert drawn == set(evidence.runs.index)


def test_missing_controls_are_read_once_they_are_there():
    claim = c19_interpolation
    digits = []
    for seed in claim.SEEDS:
        digits.append(plant_run(claim.DIGIT, seed, {}))
    controls = plant_flagfile("15_digit_all_next").results.loaded

    before, *_ = claim.judge(Evidence(Results(digits)))
    after, *_ = claim.judge(Evidence(Results([*digits, *controls])))

    assert before.missing
    assert before.others.keys() == {"untrained"}
    assert not after.missing
    assert len(after.others["trained on all"]) == 5


def test_rows_of_planned_networks_follow_once_they_were_trained():
    planned = plant_flagfile("17_donut_shallow_next")

    before = list(c05_kernel.judge(Evidence()))
    after = list(c05_kernel.judge(planned))

    assert len(after) == len(before) + 2
    row = find(c05_kernel, planned, "bump, depth 2")
    assert row.num_tried == 5
    assert len(row.others["trained on all"]) == 5


def test_larger_grids_are_read_beside_the_others():
    studies = {}
    for name, sizes in {
        "threshold_small": (16, 20, 24),
        "threshold_small_next": (40, 48, 64),
    }.items():
        studies[name] = plant_searches(sizes, power=3)

    (row,) = c16_data_needed.judge(Evidence(studies=studies))

    assert row.num_tried == 6
    assert row.holds == "yes"


def test_runs_that_are_measured_again_take_the_place_of_old_ones(
    tmp_path: Path,
):
    """The pack of a repeated sweep is read after the one with old runs."""
    work = make_work(
        "sweep", [f"--flagfile={NEXT / '09_stripes_plus_next.flags'}"]
    )
    for study, share in {"stripes": None, "stripes_plus_next": 0.3}.items():
        numbers = {}
        if share is not None:
            numbers["nearest_plus_share"] = share
        runs = []
        for trial in work.items:
            flags = trial.config.to_flags()
            runs.append(plant_run(flags, trial.seed, numbers))
        planted = Results(runs)
        write_pack(tmp_path, study, planted.runs, planted.numbers)

    evidence = read_evidence([str(tmp_path)])

    *_, row = c14_stripes_compose.judge(evidence)
    assert row.number.n == 20
    assert row.holds == "no"
