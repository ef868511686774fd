"""The acting decoder: where poses start, and what was planted."""

from pathlib import Path

import numpy as np
import pytest

from tfcomp import load_run
from tfcomp.config.run_flags import parse_config
from tfcomp.contrib.acting import first_poses
from tfcomp.contrib.acting.canvas import FIRST_SIZE
from tfcomp.contrib.acting.first_poses import draw_numbers, fit_moment
from tfcomp.train import run_training


@pytest.mark.slow
def test_a_hue_without_color_is_not_fitted(tmp_path: Path) -> None:
    # Four hues would turn the square to no effect, as they start.
    flags = [
        *("--flagfile=acting.flags", "--nopictures", "--noexport"),
        *("--candidates=8", "--epochs=8", f"--run_name={tmp_path.name}"),
        *("--sprite_sizes=1,2,1,4,4,5", "--region=scale:1,x:#2-3,hue:#0"),
        *(f"--log_dir={tmp_path}/logs", f"--export_dir={tmp_path}/exported"),
    ]
    config = parse_config(flags)
    colored = run_training(config)
    assert set(colored["channels"]["hue"]) == {"color"}
    assert colored["ood"]["relative_mse"] < 0.05
    page = load_run(config.run_dir).write_report(tmp_path / "report")
    assert "hue" in page.read_text("utf-8")
    flags += ["--run_name=plain", "--channels=x,y,angle,size,template"]
    plain = run_training(parse_config(flags))
    assert plain["id"]["relative_mse"] > 5 * colored["id"]["relative_mse"]
    assert plain["id"]["relative_mse"] > 0.05


# Starts

FACTORS = [["a", 3, "ordered"], ["b", 4, "ordered"], ["turn", 4, "periodic"]]


def draw_disc(x: float, y: float, radius: float) -> np.ndarray:
    """On 20 rows and 30 columns, dark on white, [20, 30, 1]."""
    rows, columns = np.mgrid[:20, :30]
    apart = np.hypot(columns + 0.5 - x, rows + 0.5 - y)
    return 1 - np.clip(radius + 0.5 - apart, 0, 1)[..., None]


def test_moments_are_the_middle_and_the_size_of_a_disc() -> None:
    images = np.stack([draw_disc(15, 10, 4), draw_disc(20, 6, 2)])
    found = first_poses.measure_moments(images, np.ones(1))
    # In halves of the shorter side, from the middle of the image.
    np.testing.assert_allclose(found["x"], [0, 0.5], atol=0.01)
    np.testing.assert_allclose(found["y"], [0, -0.4], atol=0.01)
    # A first template at this size covers as much.
    radii = first_poses.DISC * np.exp(found["size"]) * 10
    np.testing.assert_allclose(radii, [4, 2], rtol=0.03)


def make_codes(
    rng: np.random.Generator, count: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    index = np.stack([rng.integers(0, s, count) for _, s, _ in FACTORS], 1)
    return index, [
        np.eye(size)[column]
        for (_, size, _), column in zip(FACTORS, index.T, strict=True)
    ]


def test_a_moment_starts_at_the_factors_that_it_needs(
    rng: np.random.Generator,
) -> None:
    index, codes = make_codes(rng, 200)
    own = np.array([-0.5, 0.1, 0.7, 0.9])
    start = fit_moment(codes, 0.2 + own[index[:, 1]])
    np.testing.assert_allclose(start.moves[3:7], own - own.mean(), atol=1e-9)
    assert start.base == pytest.approx(0.2 + own.mean())
    np.testing.assert_array_equal(start.moves[[0, 1, 2, 7, 8, 9, 10]], 0)
    # What is far below `FLOOR` needs no factor.
    for size, is_used in ((0.003, False), (0.1, True)):
        moment = own[index[:, 1]] + size * index[:, 0]
        assert fit_moment(codes, moment).moves[:3].any() == is_used
    constant = fit_moment(codes, np.full(200, 0.3))
    assert constant.base == 0.3 and not constant.moves.any()


def test_one_image_of_a_value_is_enough(rng: np.random.Generator) -> None:
    index, codes = make_codes(rng, 200)
    own = np.array([-0.5, 0.1, 0.7])
    common = index[:, 0] < 2
    index, codes = index[common], [code[common] for code in codes]
    codes = [np.concatenate([code, code[:1]]) for code in codes]
    codes[0][-1] = np.eye(3)[2]
    moment = np.append(own[index[:, 0]], own[2])
    start = fit_moment(codes, moment)
    np.testing.assert_allclose(start.base + start.moves[:3], own, atol=1e-9)


def test_starts_differ_between_candidates_in_how_they_turn(
    rng: np.random.Generator,
) -> None:
    base, moves = draw_numbers("angle", 1, FACTORS, 16, None, rng)
    assert base.shape == (16, 1, 1) and moves.shape == (16, 11, 1)
    turns = np.diff(moves[:, 7:, 0], axis=1).mean(axis=1) / (np.pi / 2)
    ways = np.where(abs(turns) < 0.5, 0, np.sign(turns))
    assert sorted(np.unique(ways, return_counts=True)[1]) == [4, 6, 6]
    sizes, _ = draw_numbers("size", 1, FACTORS, 2, None, rng)
    np.testing.assert_allclose(sizes, np.log(FIRST_SIZE))
    for count in (2, 3, 7, 8):
        _, few = draw_numbers("angle", 1, FACTORS, count, None, rng)
        is_turn = abs(np.diff(few[:, 7:, 0]).mean(axis=1)) > np.pi / 4
        assert count / 2 <= is_turn.sum() < count
