"""Enough coverage, on planted scores; the chain from data and embeddings."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import tfcomp
from tfcomp import embeddings, solvable
from tfcomp.report.coverage import make_exhibits

SHARES = (0.1, 0.2, 0.4, 0.6, 0.8)
FLAGS = "--coverage=random:.1,.2,.4,.6,.8"
SIZE = 7
INDEX = np.array(list(np.ndindex(SIZE, SIZE)))
RNG = np.random.default_rng(0)
PARTS = RNG.uniform(0, 0.5, (2, SIZE, 12))
SUM = PARTS[0, INDEX[:, 0]] + PARTS[1, INDEX[:, 1]]
MEMORY = np.eye(len(INDEX))  # a unit for each combination
NOISE = RNG.normal(size=SUM.shape)
Tables = tuple[pd.DataFrame, pd.DataFrame]


def plant(scores: dict[str, np.ndarray], determined: tuple = ()) -> Tables:
    """Makes tables of runs with these scores [seeds, coverages] by model."""
    runs = []
    rows = []
    for model, table in scores.items():
        for (seed, place), value in np.ndenumerate(table):
            run = f"{model} {seed} {place}"
            region = f"random:{1 - SHARES[place]:.9g}:{seed}"
            if not math.isinf(value):  # a training that failed
                runs.append((run, seed, model, region))
            certified = 1.0 if place in determined else 0.5
            numbers = {
                ("ood", "r2"): value,
                ("ood", "relative_mse"): 1 - value,
                ("all", "coverage/combinations"): SHARES[place],
                ("all", "certificate/1/certified"): certified,
                ("all", "references/additive/ood_r2"): 0.25,
            }
            for (subset, name), number in numbers.items():
                rows.append((run, "end", subset, "", name, number))
    columns = ["run", "when", "subset", "stage", "name", "value"]
    return (
        pd.DataFrame(runs, columns=["run", "seed", "model", "region"]),
        pd.DataFrame(rows, columns=columns),
    )


def spread(means: list[float], width: float = 0.002) -> np.ndarray:
    return np.array(means) + width * np.array([[-1], [0], [1]])


def answer(tables: Tables, name: str = "ood/r2", **options) -> pd.DataFrame:
    """The answers of each line, which all of its rows have."""
    table = tfcomp.coverage_table(*tables, name, **options)
    columns = ["enough", "enough_low", "enough_high", "all_determined"]
    answers = table.groupby("line", sort=False)[columns]
    assert (answers.nunique(dropna=False) == 1).all(axis=None)
    return answers.agg(lambda values: values.iloc[0])


def find_enough(tables: Tables, name: str = "ood/r2", **options) -> list:
    enough = answer(tables, name, **options)["enough"]
    return enough.astype(object).where(enough.notna(), None).tolist()


def test_means_and_intervals() -> None:
    scores = spread([0.1, 0.3, 0.5, 0.7, 0.9])

    table = tfcomp.coverage_table(*plant({"cnn": scores}, (3, 4)))

    assert table["coverage"].tolist() == list(SHARES)
    assert_allclose(table["mean"], scores.mean(axis=0))
    # R^2 is at most 1: Student's interval of the logarithm of 1 - R^2.
    width = stats.t.ppf(0.975, 2) * 0.002 / math.sqrt(3)
    factor = np.exp(width / (1 - scores[1]))
    assert_allclose(table["low"], 1 - (1 - scores[1]) * factor)
    assert_allclose(table["high"], 1 - (1 - scores[1]) / factor)
    assert table["n"].tolist() == [3] * 5
    assert table["determined"].tolist() == [0.5, 0.5, 0.5, 1, 1]
    assert table["additive"].tolist() == [0.25] * 5
    assert table["nearest"].isna().all()


@pytest.mark.parametrize(
    ("means", "enough"),
    [
        ([0.1, 0.3, 0.98, 0.98, 0.99], 0.4),
        ([0.1, 0.98, 0.5, 0.98, 0.99], 0.6),  # not from .2: it fails at .4
        ([0.98, 0.98, 0.98, 0.98, 0.5], None),
        ([0.98, 0.98, 0.98, 0.98, 0.98], 0.1),
        ([0.1, 0.3, 0.5, 0.89, 0.901], None),  # the interval reaches the bound
    ],
)
def test_enough_is_enough_at_every_larger_coverage(
    means: list[float],
    enough: float | None,
) -> None:
    tables = plant({"cnn": spread(means)})

    assert find_enough(tables) == [enough]
    assert find_enough(tables, "ood/relative_mse") == [enough]
    assert find_enough(tables, bound=0.0) == [0.1]
    assert find_enough(tables, bound=0.999) == [None]


def test_lines_and_their_order() -> None:
    good = spread([0.1, 0.3, 0.98, 0.98, 0.99])
    tables = plant({"low_rank": good, "cnn": 0 * good}, determined=(1, 3, 4))

    table = answer(tables)

    assert table.index.tolist() == ["model low_rank", "model cnn"]
    assert find_enough(tables) == [0.4, None]
    assert table["all_determined"].tolist() == [0.6, 0.6]


def test_a_seed_has_no_interval() -> None:
    scores = spread([0.98] * 5)

    assert find_enough(plant({"cnn": scores[:1]})) == [None]
    two = answer(plant({"cnn": scores[:2]}))
    assert two["enough_low"].isna().all()


def test_a_lost_score_is_not_left_out_but_a_failed_run_is() -> None:
    scores = spread([0.98] * 5)
    lost, failed = scores.copy(), scores.copy()
    lost[0, 2] = np.nan
    failed[0, 2] = np.inf

    assert find_enough(plant({"cnn": lost})) == [0.6]
    table = tfcomp.coverage_table(*plant({"cnn": failed}))
    assert table["n"].tolist() == [3, 3, 2, 3, 3]


def test_bootstrap_of_all_samples() -> None:
    """The slow definition: every sample of four seeds, with repeats."""
    rng = np.random.default_rng(7)
    scores = np.array([0.3, 0.9, 0.93, 0.97, 0.99])
    scores = scores + rng.normal(0, 0.02, (4, 5)) * [1, 1, 1, 0.5, 0.1]
    samples = list(itertools.product(range(4), repeat=4))
    gaps = 1 - scores[samples]  # [samples, seeds, coverages]
    gap = gaps.mean(axis=1)
    width = stats.t.ppf(0.975, 3) * gaps.std(axis=1, ddof=1) / 2
    is_met = gap * np.exp(width / gap) < 0.1
    holds = np.logical_and.accumulate(is_met[:, ::-1], axis=1)
    least = np.append(np.inf, SHARES[::-1])[holds.sum(axis=1)]
    low, high = np.quantile(least, [0.025, 0.975], method="inverted_cdf")

    table = answer(plant({"cnn": scores}))

    assert low < high
    assert table["enough_low"].tolist() == [low]
    assert table["enough_high"].tolist() == [high]


def test_figure(tmp_path: Path) -> None:
    good = spread([0.1, 0.3, 0.98, 0.98, 0.99])
    tables = plant({"low_rank": good, "cnn": good / 2}, determined=(3, 4))

    figure = tfcomp.plot_coverage(*tables, width=4)

    assert figure.get_figwidth() == 4
    pd.testing.assert_frame_equal(figure.data, tfcomp.coverage_table(*tables))
    names = ["ood/r2", "ood/relative_mse", "ood/mse"]
    exhibits = make_exhibits(*tables, names)
    names = ["coverage_ood_r2", "coverage_ood_relative_mse"]
    assert [exhibit.name for exhibit in exhibits] == names


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ood/relative_ms", {}, "relative_mse"),
        ("ood/r2", {"by": "modle"}, "model"),
        ("coverage/combinations", {}, "bound"),
    ],
)
def test_mistakes(name: str, options: dict, words: str) -> None:
    tables = plant({"cnn": spread([0.9] * 5)})
    with pytest.raises(tfcomp.ConfigError, match=words):
        tfcomp.coverage_table(*tables, name, **options)


def test_runs_without_coverage() -> None:
    runs, numbers = plant({"cnn": spread([0.9] * 5)})
    numbers = numbers[numbers["name"] != "coverage/combinations"]
    with pytest.raises(tfcomp.ConfigError, match="coverage/combinations"):
        tfcomp.coverage_table(runs, numbers)


@pytest.fixture(scope="module")
def covered() -> Tables:
    """Embeddings that add up, remember each combination, or are noise."""
    table = pd.DataFrame(INDEX, columns=["x", "y"])
    layers = {"sum": SUM, "memory": MEMORY, "noise": NOISE}
    return tfcomp.cover_embeddings(layers, table, FLAGS.partition("=")[2])


@pytest.mark.parametrize("name", ["composed_ood", "accuracy_ood"])
def test_embeddings(covered: Tables, name: str) -> None:
    """A sum needs what the certificate says, a memory all, noise never."""
    enough = dict(
        zip(["sum", "memory", "noise"], find_enough(covered, name), strict=True)
    )

    needed = answer(covered, name).loc["layer sum", "all_determined"]
    assert 0.1 < needed < 0.8
    if name == "composed_ood":
        assert enough["sum"] == needed
    assert enough["memory"] is None
    assert enough["noise"] is None


def test_a_sum_is_exact_where_it_is_determined(covered: Tables) -> None:
    table = tfcomp.coverage_table(*covered, "composed_ood")
    table = table[table["line"] == "layer sum"]
    is_exact = table["mean"] < 1e-6
    assert is_exact.tolist() == (table["determined"] == 1).tolist()
    assert (table["nearest"] > 0.1).all()


def write(path: Path) -> Path:
    """Writes additive images and embeddings of all combinations."""
    images = SUM.reshape(-1, 3, 4)
    np.savez(path, images=images, classes=INDEX, names=["x", "y"], last=SUM)
    return path


def test_command_of_embeddings(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    path = write(tmp_path / "own.npz")
    output = tmp_path / "out"

    arguments = [str(path), FLAGS, "--seeds=4", f"--output={output}"]
    assert embeddings.main(["embeddings", *arguments]) == 0

    assert "all: enough from" in capsys.readouterr().out
    table = pd.read_csv(output / "coverage_composed_ood.csv")
    assert table["n"].tolist() == [4] * 5
    assert (output / "coverage_accuracy_ood.png").exists()
    with pytest.raises(tfcomp.ConfigError, match="--coverage"):
        embeddings.main(["embeddings", str(path), "--coverage=.1"])
    with pytest.raises(tfcomp.ConfigError, match="--seeds"):
        embeddings.main(["embeddings", str(path), FLAGS, "--seeds=0"])


def test_command_of_data(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    """Of images that add up, the additive predictor needs the certificate."""
    path = write(tmp_path / "own.npz")
    data = ["--dataset=table", f"--data={path}", "--region=none"]

    assert solvable.main(["solvable", *data, FLAGS]) == 0

    lines = capsys.readouterr().out.splitlines()
    additive, nearest = [line for line in lines if "predictor" in line]
    share = re.findall(r"determined from ([\d.]+)", additive)[0]
    assert f"additive: enough from {share} " in additive
    assert "nearest training image: no coverage" in nearest
