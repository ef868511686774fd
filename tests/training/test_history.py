"""`history.csv`: what TensorBoard shows, and exact on resume."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.training.history import History, read_history


def test_numbers_are_those_of_tensorboard(
    smoke_run: RunConfig, read_events: Callable
) -> None:
    rows = read_history(Path(smoke_run.run_dir) / "history.csv")
    assert list(rows) == [1, 2, 3, 4]
    expected = read_events(smoke_run)
    for tag in ("train/loss", "id/relative_mse", "ood/relative_mse"):
        # Few scores are one point in TensorBoard.
        first = 1 if tag == "train/loss" else 4
        curve = {
            event.step: float(tf.make_ndarray(event.tensor_proto))
            for event in expected.Tensors(tag)
        }
        assert {e: row[tag] for e, row in rows.items() if e >= first} == curve


@pytest.mark.parametrize("content", [b"", b"epoch,a\n1,", b"x\n1\n", b"\xff"])
def test_a_damaged_file_is_named_and_begun_anew(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "history.csv"
    file.write_bytes(content)
    History(tmp_path).add(3, {"train/loss": 0.5})
    assert read_history(file) == {3: {"train/loss": 0.5}}
    assert f"no curves from {file}" in capsys.readouterr().err


def test_a_resumed_run_ends_in_the_same_file(tmp_path: Path) -> None:
    def train(history: History, first: int, last: int) -> None:
        for epoch in range(first, last + 1):
            history.add(epoch, {"train/loss": 1 / epoch})
            if epoch % 2 == 0:
                history.add(epoch, {"id/mse": 0.1 * epoch, "ood/mse": None})

    whole, parts = folders = [tmp_path / "whole", tmp_path / "parts"]
    for folder in folders:
        folder.mkdir()
    train(History(whole), 1, 6)
    train(History(parts), 1, 4)  # ends after the checkpoint of epoch 2
    train(History(parts), 3, 3)
    assert list(read_history(parts / "history.csv")) == [1, 2, 3]
    train(History(parts), 3, 6)
    first, second = ((f / "history.csv").read_bytes() for f in folders)
    assert first == second
    assert b"\n1,1.0,\n" in first  # no score at this epoch


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float32(tmp_path: Path) -> None:
    History(tmp_path).add(1, {"id/mse": 1e300})
    assert read_history(tmp_path / "history.csv") == {1: {"id/mse": math.inf}}
