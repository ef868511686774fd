"""Enough coverage, on planted scores; the chain from data and embeddings."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import tfcomp
from tfcomp import embeddings, solvable
from tfcomp.report.coverage import make_exhibits

SHARES = (0.1, 0.2, 0.4, 0.6, 0.8)
COVERAGE = "random:.1,.2,.4,.6,.8"
FLAGS = f"--coverage={COVERAGE}"
SIZE = 7
INDEX = np.array(list(np.ndindex(SIZE, SIZE)))
RNG = np.random.default_rng(0)
PARTS_OF_X, PARTS_OF_Y = RNG.uniform(0, 0.5, (2, SIZE, 12))
SUM = PARTS_OF_X[INDEX[:, 0]] + PARTS_OF_Y[INDEX[:, 1]]
MEMORY = np.eye(len(INDEX))  # a unit for each combination
NOISE = RNG.normal(size=SUM.shape)
GOOD = [0.1, 0.3, 0.98, 0.98, 0.99]
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
                "ood/r2": value,
                "ood/relative_mse": 1 - value,
                "all/coverage/combinations": SHARES[place],
                "all/certificate/1/certified": certified,
                "all/references/additive/ood_r2": 0.25,
            }
            for name, number in numbers.items():
                rows.append((run, "end", "", *name.split("/", 1), number))
    columns = ["run", "when", "stage", "subset", "name", "value"]
    return (
        pd.DataFrame(runs, columns=["run", "seed", "model", "region"]),
        pd.DataFrame(rows, columns=columns),
    )


def spread(means: list[float], width: float = 0.002) -> np.ndarray:
    """Scores of three seeds with these means, [seeds, coverages]."""
    middle = np.array(means)
    return np.stack([middle - width, middle, middle + width])


def answer(tables: Tables, name: str = "ood/r2", **options) -> pd.DataFrame:
    return list_answers(tfcomp.coverage_table(*tables, name, **options))


def list_answers(table: pd.DataFrame) -> pd.DataFrame:
    """The answers of each line, which all of its rows have."""
    columns = ["enough", "enough_low", "enough_high", "all_determined"]
    answers = table[["line", *columns]].drop_duplicates()
    assert answers["line"].is_unique
    return answers.set_index("line")


def find_enough(tables: Tables, name: str = "ood/r2", **options) -> list:
    """The least coverage that is enough, by line; None if none is."""
    enough = answer(tables, name, **options)["enough"].astype(object)
    return enough.replace(np.nan, None).tolist()


def test_means_and_intervals():
    scores = spread([0.1, 0.3, 0.5, 0.7, 0.9])
    tables = plant({"cnn": scores}, determined=(3, 4))

    table = tfcomp.coverage_table(*tables)

    assert table["coverage"].tolist() == list(SHARES)
    assert_allclose(table["mean"], scores.mean(axis=0))
    # R^2 is at most 1: Student's interval of the logarithm of 1 - R^2.
    gap = 1 - scores[1]
    width = stats.t.ppf(0.975, 2) * 0.002 / math.sqrt(3)
    factor = np.exp(width / gap)
    assert_allclose(table["low"], 1 - gap * factor)
    assert_allclose(table["high"], 1 - gap / factor)
    assert table["n"].tolist() == [3] * 5
    assert table["determined"].tolist() == [0.5, 0.5, 0.5, 1, 1]
    assert table["additive"].tolist() == [0.25] * 5
    assert table["nearest"].isna().all()


@pytest.mark.parametrize(
    ("means", "enough"),
    [
        ([0.1, 0.98, 0.5, 0.98, 0.99], 0.6),  # not from .2: it fails at .4
        ([0.98, 0.98, 0.98, 0.98, 0.5], None),
        ([0.98, 0.98, 0.98, 0.98, 0.98], 0.1),
        ([0.1, 0.3, 0.5, 0.89, 0.901], None),  # the interval reaches the bound
    ],
)
def test_enough_is_enough_at_every_larger_coverage(means, enough):
    assert find_enough(plant({"cnn": spread(means)})) == [enough]


def test_the_bound_is_of_any_number_and_may_be_chosen():
    tables = plant({"cnn": spread(GOOD)})

    assert find_enough(tables, "ood/relative_mse") == [0.4]
    assert find_enough(tables, bound=0.0) == [0.1]
    assert find_enough(tables, bound=0.999) == [None]


def test_lines_and_their_order():
    good = spread(GOOD)
    scores = {
        "low_rank": good,
        "cnn": 0 * good,
    }
    tables = plant(scores, determined=(1, 3, 4))

    table = answer(tables)

    assert table.index.tolist() == ["model low_rank", "model cnn"]
    assert_array_equal(table["enough"], [0.4, np.nan])
    assert table["all_determined"].tolist() == [0.6, 0.6]


def test_a_seed_has_no_interval_and_two_have_no_bootstrap():
    scores = spread([0.98] * 5)

    assert find_enough(plant({"cnn": scores[:1]})) == [None]
    assert answer(plant({"cnn": scores[:2]}))["enough_low"].isna().all()


def test_a_lost_score_is_not_left_out_and_a_failed_run_is():
    scores = spread([0.98] * 5)
    scores[0, 2] = np.nan
    scores[0, 4] = np.inf
    tables = plant({"cnn": scores})

    table = tfcomp.coverage_table(*tables)

    assert table["n"].tolist() == [3, 3, 3, 3, 2]
    assert find_enough(tables) == [0.6]


def test_bootstrap_of_all_samples():
    """The slow definition: every sample of four seeds, with repeats."""
    rng = np.random.default_rng(7)
    means = [0.3, 0.9, 0.93, 0.97, 0.99]
    scores = rng.normal(means, [0.02, 0.02, 0.02, 0.01, 0.002], (4, 5))
    enough = []
    for sample in itertools.product(range(4), repeat=4):
        gaps = 1 - scores[list(sample)]  # [seeds, coverages]
        gap = gaps.mean(axis=0)
        error = gaps.std(axis=0, ddof=1) / 2
        width = stats.t.ppf(0.975, 3) * error
        is_met = gap * np.exp(width / gap) < 0.1
        least = np.inf
        for share, holds in zip(SHARES[::-1], is_met[::-1], strict=True):
            if not holds:
                break
            least = share
        enough.append(least)
    ends = np.quantile(
        enough,
        [0.025, 0.975],
        method="inverted_cdf",
    )

    table = answer(plant({"cnn": scores}))

    assert ends[0] < ends[1]
    assert_array_equal(table[["enough_low", "enough_high"]], [ends])


def test_figure():
    tables = plant({"cnn": spread(GOOD)}, determined=(3, 4))

    figure = tfcomp.plot_coverage(*tables, width=4)

    assert figure.get_figwidth() == 4
    assert figure.data.equals(tfcomp.coverage_table(*tables))
    # No run has this score.
    assert make_exhibits(*tables, ["ood/mse"]) == []


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ood/relative_ms", {}, "relative_mse"),
        ("ood/r2", {"by": "modle"}, "model"),
        ("coverage/combinations", {}, "bound"),
    ],
)
def test_mistakes(name, options, words):
    tables = plant({"cnn": spread(GOOD)})
    with pytest.raises(tfcomp.ConfigError, match=words):
        tfcomp.coverage_table(
            *tables,
            name,
            **options,
        )


def test_runs_without_coverage():
    runs, numbers = plant({"cnn": spread(GOOD)})
    numbers = numbers[numbers["name"] != "coverage/combinations"]
    with pytest.raises(tfcomp.ConfigError, match="coverage/combinations"):
        tfcomp.coverage_table(runs, numbers)


def test_embeddings():
    """A sum needs what the certificate says, a memory all, noise never."""
    factors = pd.DataFrame(INDEX, columns=["x", "y"])
    layers = {
        "sum": SUM,
        "memory": MEMORY,
        "noise": NOISE,
    }

    tables = tfcomp.cover_embeddings(layers, factors, COVERAGE, seeds=3)

    table = tfcomp.coverage_table(*tables, "composed_ood")
    answers = list_answers(table)
    needed, *_ = answers["all_determined"]
    assert 0.1 < needed < 0.8
    assert_array_equal(answers["enough"], [needed, np.nan, np.nan])
    assert find_enough(tables, "accuracy_ood")[1:] == [None, None]
    of_sum = table[table["line"] == "layer sum"]
    assert_array_equal(of_sum["mean"] < 1e-6, of_sum["determined"] == 1)
    assert of_sum["nearest"].min() > 0.1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Additive images and embeddings of all combinations."""
    path = tmp_path / "own.npz"
    images = SUM.reshape(-1, 3, 4)
    np.savez(
        path,
        images=images,
        classes=INDEX,
        names=["x", "y"],
        last=SUM,
    )
    return path


@pytest.mark.usefixtures("few_pictures")
def test_command_of_embeddings(path, tmp_path, capsys):
    output = tmp_path / "out"

    arguments = [str(path), FLAGS, "--seeds=3", f"--output={output}"]
    assert embeddings.main(["embeddings", *arguments]) == 0

    assert "all: enough from" in capsys.readouterr().out
    table = pd.read_csv(output / "coverage_composed_ood.csv")
    assert table["n"].tolist() == [3] * 5
    assert (output / "coverage_accuracy_ood.png").exists()
    with pytest.raises(tfcomp.ConfigError, match="--coverage"):
        embeddings.main(["embeddings", str(path), "--coverage=.1"])
    with pytest.raises(tfcomp.ConfigError, match="--seeds"):
        embeddings.main(["embeddings", str(path), FLAGS, "--seeds=0"])


def test_command_of_data(path, capsys):
    """Of images that add up, the additive predictor needs the certificate."""
    data = ["--dataset=table", f"--data={path}", "--region=none"]

    assert solvable.main(["solvable", *data, FLAGS, "--seeds=3"]) == 0

    lines = capsys.readouterr().out.splitlines()
    additive, nearest = [line for line in lines if "predictor" in line]
    (share,) = re.findall(r"determined from ([\d.]+)", additive)
    assert f"additive: enough from {share} " in additive
    assert "nearest training image: no coverage" in nearest
