"""Numbers that old evidence lacks: where runs have them, claims are decided."""

from pathlib import Path

import pytest

from reproduction.claims import (
    c09_warp,
    c17_stripes_uniform,
    c21_several_bumps,
    read_evidence,
)
from reproduction.claims.networks import (
    ALL_SEEDS,
    BUMPS_ALONE,
    DONUTS,
    LONG,
    STRIPES,
)
from reproduction.packing import write_pack
from tests.reproduction.claims.worlds import find, plant, start

BUMP = DONUTS["bump"]
FLOAT = {"precision": "float32"}
WARP = c09_warp.PER_CONTRAST
RISE = [0.0, 0.1, 0.2, 0.5, 0.9]
ZEROS = [0.0] * 5
FLAT = {f"{WARP}_id": ZEROS, f"{WARP}_ood": ZEROS}
WARPED = FLAT | {f"{WARP}_ood": RISE}
PEAKS = {f"multiple_peaks_by_height_ood/{place}": 0.8 for place in range(6)}
NO_PEAKS = dict.fromkeys(PEAKS, 0.0)

# The claim, settings with their seeds and numbers, a part, and how the
# quantity of its row begins.
WORLDS = {
    "C17": (
        c17_stripes_uniform,
        [
            (BUMPS_ALONE | FLOAT, range(300, 320), WARPED),
            (STRIPES | LONG | FLOAT | {"num_bumps": 50}, range(300, 320), FLAT),
        ],
        "difference",
        "the same per contrast",
    ),
    "C21": (
        c21_several_bumps,
        [
            (BUMP, c21_several_bumps.NEW_SEEDS, PEAKS | start(NO_PEAKS)),
            (BUMP | {"train_all": True}, ALL_SEEDS, NO_PEAKS),
        ],
        "bump",
        "share of OOD images with two peaks or more, above 0.05",
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_packed_runs_decide_what_is_open(name: str, tmp_path: Path):
    claim, groups, part, words = WORLDS[name]
    planted = plant(*groups).results

    write_pack(tmp_path, "planted", planted.runs, planted.numbers)

    evidence = read_evidence([str(tmp_path)])
    row = find(claim, evidence, part, words)
    assert row.number.n >= 10
    assert row.holds == ("yes" if row.bound else "-")
    for control in row.controls.values():
        assert control.difference.low > 0
