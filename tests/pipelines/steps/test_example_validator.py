"""The example validator: planted anomalies, and none in good data."""

from pathlib import Path

import numpy as np
import pytest

from pipelines.steps.examples import find_anomalies, validate_datasets
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import Examples, materialize

SMALL = ("--flagfile=smoke.flags", "--region=corner:7")
GOOD = {
    "bumps": SMALL,
    "no region": ("--flagfile=smoke.flags", "--region=none"),
    "continuous": (*SMALL, "--coordinates=continuous"),
    "control": (*SMALL, "--train_all"),
    "stripes": (*SMALL, "--dataset=stripes", "--num_bumps=5"),
    "several images": (
        *("--dataset=table", "--data=own.npz", "--model=mlp"),
        *("--factors=a,b", "--region=a:2,b:2"),
    ),
    "digit": (
        "--flagfile=rotated_mnist.flags",
        "--digit_source=stand_in",
        "--num_angles=37",
    ),
}


def make(*flags: str) -> tuple[Dataset, Examples, Examples]:
    """A data set and its examples as they should be."""
    dataset = make_dataset(parse_config(list(flags)))
    splits = dataset.splits
    ood = splits.grid[splits.is_ood]
    return dataset, draw(splits.train, dataset), draw(ood, dataset)


def draw(factors: np.ndarray, dataset: Dataset) -> Examples:
    return Examples(factors, dataset.render_array(factors))


def append(examples: Examples, factors: list[float], dataset: Dataset):
    """Examples with one more, drawn as it should be."""
    return draw(
        np.append(examples.factors, np.float32([factors]), axis=0), dataset
    )


def find(dataset: Dataset, train: Examples, ood: Examples) -> dict[str, str]:
    """Reasons by check; the last one of a check."""
    return dict(find_anomalies(dataset, train, ood))


@pytest.mark.parametrize("kind", GOOD)
def test_good_data_have_no_anomalies(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).random((18, 4, 4))
    images[0] = 0.5  # blank as it is
    classes = np.argwhere(np.ones((3, 3, 2)))
    names = ["a", "b", "c"]
    np.savez("own.npz", images=images, classes=classes, names=names)
    config = parse_config(list(GOOD[kind]))
    materialize(config, tmp_path)
    assert validate_datasets([config], tmp_path) == []


def test_leaks() -> None:
    dataset, train, ood = make(*SMALL)
    found = find(dataset, append(train, [8, 9], dataset), ood)
    where = "the region corner:7, the first at"
    assert found["leak"] == f"1 training examples lie in {where} [8.0, 9.0]"
    line = "training examples: 120, the flags describe 119"
    assert found["splits"] == line
    found = find(dataset, train, append(ood, [1, 2], dataset))
    line = f"1 held-out examples lie outside {where} [1.0, 2.0]"
    assert found["leak"] == line


def test_moved_example() -> None:
    dataset, train, ood = make(*SMALL)
    factors = train.factors.copy()
    factors[3] += 0.25
    found = find(dataset, draw(factors, dataset), ood)
    assert set(found) == {"splits"}
    assert "the first has index 3: [0.25, 3.25]" in found["splits"]


@pytest.mark.parametrize(
    ("image", "fault"),
    [(np.nan, "do not match their factors"), (1.0, "are blank")],
)
def test_odd_pixels(image: float, fault: str) -> None:
    dataset, train, ood = make(*SMALL)
    train.images[4] = image
    found = list(find_anomalies(dataset, train, ood))
    reason = f"training images: 1 {fault}, the first has index 4"
    assert ("pixels", reason) in found


def test_absent_datasets_are_anomalies(tmp_path: Path) -> None:
    configs = [parse_config([*SMALL, f"--sigma={s}"]) for s in (1, 2, 3)]
    materialize(configs[0], tmp_path)
    found = validate_datasets(configs, tmp_path)
    assert [anomaly.check for anomaly in found] == ["readable"] * 2
    assert "sigma=2" in found[0].dataset
