"""The models of this repository: their scores, and one trained again."""

from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.models.acting import clear_candidates
from tfcomp.models.loading import load_published_run, load_run
from tfcomp.storage.published_folder import DEFAULT, list_published
from tfcomp.training.experiment import describe_environment, train_and_evaluate
from tfcomp.training.publish import check_scores, score_stored

FOLDER = str(Path(__file__).parents[2] / DEFAULT)
MNIST = Path(__file__).parents[3] / "shared" / "tensorflow_datasets"
ALL = {model.name: model for model in list_published(FOLDER)}
# The smallest of each kind of data.
SAMPLE = sorted(
    min((n for n in ALL if n.startswith(kind)), key=lambda n: ALL[n].size)
    for kind in {name.partition("/")[0] for name in ALL}
)[:3]
AGAIN = "bumps/additive/corner_9"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in SAMPLE else pytest.mark.slow)
        for name in sorted(ALL)
    ],
)
def test_recorded_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if MNIST.exists():
        monkeypatch.setenv("TFDS_DATA_DIR", str(MNIST))
    run = load_published_run(name, FOLDER)
    found = score_stored(run)
    check_scores(run.metrics, found)
    check_scores({"id_r2": run.metrics["r2"]}, {"id_r2": found["r2"]})
    assert run.metrics["train"]["weights"] == run.model.count_params()


def test_other_weights_have_other_scores() -> None:
    run = load_published_run(SAMPLE[0], FOLDER)
    weights = run.model.get_weights()
    run.model.set_weights([1.01 * values for values in weights])
    with pytest.raises(RunError, match="has id/mse"):
        check_scores(run.metrics, score_stored(run))


@pytest.mark.slow
def test_one_is_trained_again_to_the_same_bits(tmp_path: Path) -> None:
    known = load_published_run(AGAIN, FOLDER)
    recorded = [
        ln[2:] for ln in known.description.splitlines() if ln[:1] == "#"
    ]
    here = describe_environment().splitlines()
    differing = [
        line
        for line, other in zip(recorded, here, strict=True)
        if line != other and not line.startswith("tfcomp: ")  # keeps the bits
    ]
    if differing:
        pytest.skip(f"it was trained with {differing}, the bits may differ")
    flags = tmp_path / "again.flags"
    flags.write_text(known.description)
    places = [f"--log_dir={tmp_path / 'logs'}", "--noexport"]
    config = parse_config([f"--flagfile={flags}", *places])
    train_and_evaluate(config)
    again = load_run(config.run_dir).model
    clear_candidates(again)
    for found, expected in zip(
        again.get_weights(), known.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
