"""Numbers that old evidence lacks: where runs have them, claims are decided."""

from pathlib import Path
from typing import Any

import pytest

from reproduction.claims import (
    Evidence,
    c09_warp,
    c14_stripes_compose,
    c15_bumps,
    c17_stripes_uniform,
    c18_units,
    c21_several_bumps,
    judge_claims,
    read_evidence,
)
from reproduction.claims.evidence import Networks
from reproduction.claims.judge import Row
from reproduction.claims.networks import (
    ALL_SEEDS,
    BUMPS_ALONE,
    DONUTS,
    LONG,
    SHORT,
    STRIPES,
)
from reproduction.packing import write_pack
from tests.reproduction.claims.worlds import plant
from tfcomp.metrics.registry import find_metric

BUMP = DONUTS["bump"]
FLOAT = {"precision": "float32"}
STRIPED = STRIPES | SHORT | FLOAT
WARP = c09_warp.PER_CONTRAST
RISE = [0.0, 0.1, 0.2, 0.5, 0.9]
FALL = RISE[::-1]
ZEROS = [0.0] * 5
FLAT = {f"{WARP}_id": ZEROS, f"{WARP}_ood": ZEROS}
WARPED = FLAT | {f"{WARP}_ood": RISE}
UNITS = {"stripe_x_share": FALL, "stripe_y_share": ZEROS, "bump_share": RISE}
EVEN = {"stripe_x_share": ZEROS, "stripe_y_share": ZEROS, "bump_share": ZEROS}
PEAKS = {f"multiple_peaks_by_height_ood/{place}": 0.8 for place in range(6)}
NO_PEAKS = dict.fromkeys(PEAKS, 0.0)
NEAREST_BUMP = "nearest_bump_share"


def start(numbers: dict[str, Any]) -> dict[str, Any]:
    return {f"start/{name}": value for name, value in numbers.items()}


# The claim, settings with their seeds and numbers, and the start of a quantity.
WORLDS: dict[str, tuple[Any, list[Any], str]] = {
    "C9": (
        c09_warp,
        [
            (BUMP, c09_warp.NEW_SEEDS, WARPED | start(FLAT)),
            (BUMP | {"train_all": True}, ALL_SEEDS, FLAT),
        ],
        "the same per contrast",
    ),
    "C14": (
        c14_stripes_compose,
        [
            (
                STRIPED | c14_stripes_compose.PRECISION | {"num_bumps": 0},
                c14_stripes_compose.SEEDS,
                {"nearest_plus_share": 0.9, "start/nearest_plus_share": 0.0},
            )
        ],
        "share of outputs nearest to a plus",
    ),
    "C15": (
        c15_bumps,
        [
            (STRIPED | {"num_bumps": n}, c15_bumps.SEEDS, {NEAREST_BUMP: share})
            for n, share in {0: 0.0, 10: 0.2, 50: 0.4, 100: 0.9}.items()
        ],
        "share of outputs nearest to a true bump",
    ),
    "C17": (
        c17_stripes_uniform,
        [
            (BUMPS_ALONE | FLOAT, range(300, 320), WARPED),
            (STRIPES | LONG | FLOAT | {"num_bumps": 50}, range(300, 320), FLAT),
        ],
        "the same per contrast",
    ),
    "C18 stripes": (
        c18_units,
        [
            (STRIPED | {"num_bumps": 50}, c18_units.SEEDS, UNITS | start(EVEN)),
            (
                STRIPED | {"num_bumps": 784, "train_all": True},
                ALL_SEEDS,
                EVEN,
            ),
        ],
        "stripes among",
    ),
    "C21": (
        c21_several_bumps,
        [
            (BUMP, c21_several_bumps.NEW_SEEDS, PEAKS | start(NO_PEAKS)),
            (BUMP | {"train_all": True}, ALL_SEEDS, NO_PEAKS),
        ],
        "share of OOD images with two peaks or more, above 0.05",
    ),
}
WORLDS["C18 bumps"] = (*WORLDS["C18 stripes"][:2], "bumps among")


def find(claim: Any, evidence: Evidence, words: str) -> Row:
    """The row of a quantity in the setting that has most runs."""
    rows = list(claim.judge(evidence))
    asked = [row for row in rows if row.quantity.startswith(words)]
    return max(asked, key=lambda row: row.number.n)


@pytest.mark.parametrize("name", WORLDS)
def test_packed_runs_decide_what_is_open(name: str, tmp_path: Path):
    claim, groups, words = WORLDS[name]
    planted = plant(*groups).results

    write_pack(tmp_path, "planted", planted.runs, planted.numbers)

    row = find(claim, read_evidence([str(tmp_path)]), words)
    assert row.number.n >= 10
    assert row.holds == ("yes" if row.bound else "-")
    for control in row.controls.values():
        assert control.difference.low > 0
    # Without them it is open.
    row = find(claim, Evidence(), words)
    assert row.holds in ("open", "-")
    assert row.number.n == 0


def test_claims_read_numbers_that_runs_have(
    monkeypatch: pytest.MonkeyPatch,
):
    asked = set()
    for method in ("score", "stages"):
        read = getattr(Networks, method)

        def spy(self: Any, name: str, read=read) -> Any:
            asked.add(name)
            return read(self, name)

        monkeypatch.setattr(Networks, method, spy)

    judge_claims(Evidence())

    assert len(asked) > 40
    for path in asked:
        parts = path.split("/")
        # What training itself writes is no metric.
        is_written = parts[0] in ("train", "embeddings")
        assert is_written or any(map(find_metric, parts)), path
