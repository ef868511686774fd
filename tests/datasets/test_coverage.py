"""What training covers of combinations, values and pixels."""

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.solvable import measure_coverage


def measure(*flags: str) -> dict[str, float]:
    config = parse_config(["--grid_size=12", "--sigma=0.3", *flags])
    return measure_coverage(make_dataset(config))


@pytest.mark.parametrize(
    ("region", "combinations", "values", "pixels"),
    [
        ("square:4-7", 128 / 144, 1.0, 128 / 144),
        ("corner:6", 108 / 144, 1.0, 108 / 144),
        ("gap:x:3-5", 108 / 144, 21 / 24, 108 / 144),
        ("none", 1.0, 1.0, 1.0),
    ],
)
def test_narrow_bumps_light_one_pixel_each(
    region: str, combinations: float, values: float, pixels: float
) -> None:
    found = measure(f"--region={region}")
    assert found["combinations"] == pytest.approx(combinations)
    assert found["values"] == pytest.approx(values)
    # A bump of this width changes its neighbors by less than 4 in 1000.
    assert found["pixels"] == pytest.approx(pixels)


@pytest.mark.parametrize("points", [64, 4096, 0])
@pytest.mark.parametrize(
    ("region", "combinations"),
    [("montero:range", 5 / 6), ("orthotopic:1", 4 / 9)],
)
def test_combinations_are_those_of_the_whole_grid(
    region: str, combinations: float, points: int
) -> None:
    """However few of them are scored, half of them OOD on purpose."""
    flags = ("--dataset=sprites", "--model=mlp", f"--region={region}")
    config = parse_config([*flags, f"--eval_points={points}"])
    found = measure_coverage(make_dataset(config))
    assert found["combinations"] == pytest.approx(combinations)
