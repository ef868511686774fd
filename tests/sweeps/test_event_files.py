"""Event files, read and written without TensorFlow, against TensorBoard."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from tfcomp.config.run_config import RunConfig
from tfcomp.sweeps.event_files import read_records
from tfcomp.sweeps.event_files import read_scalars
from tfcomp.sweeps.sweep_curves import QUANTITIES


def write(folder: Path, values: dict[int, float]) -> None:
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default():
        for step, value in values.items():
            tf.summary.scalar("train/loss", value, step=step)
            tf.summary.scalar("else", -value, step=step)
    writer.close()


def test_scalars_as_tensorboard_reads_them(smoke_run: RunConfig) -> None:
    folder = Path(smoke_run.run_dir)
    found = read_scalars(folder, QUANTITIES)
    assert set(found) == set(QUANTITIES)
    expected = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    expected.Reload()
    for tag, curve in found.items():
        events = expected.Tensors(tag)
        assert curve == {
            event.step: float(tf.make_ndarray(event.tensor_proto))
            for event in events
        }
        assert sorted(curve) == [1, 2, 3, 4]


def test_a_resumed_run_replaces_what_it_repeats(tmp_path: Path) -> None:
    write(tmp_path, {1: 0.5, 2: 0.25, 3: 0.75})
    first = next(tmp_path.iterdir())
    first.rename(tmp_path / "events.out.tfevents.1.first")
    write(tmp_path, {3: 0.125, 4: 1.0})
    found = read_scalars(tmp_path, ["train/loss"])
    assert found == {"train/loss": {1: 0.5, 2: 0.25, 3: 0.125, 4: 1.0}}


@pytest.mark.parametrize("lost", [1, 20, 60])
def test_a_file_that_ends_in_a_record(tmp_path: Path, lost: int) -> None:
    write(tmp_path, {1: 0.5, 2: 0.25})
    (file,) = tmp_path.iterdir()
    whole = list(read_records(file))
    file.write_bytes(file.read_bytes()[:-lost])
    rest = list(read_records(file))
    # The checksum of the last record is not needed to read it.
    assert rest == (whole if lost <= 4 else whole[: len(rest)])
    assert len(whole) - len(rest) <= 2


def test_no_events(tmp_path: Path) -> None:
    assert read_scalars(tmp_path, ["train/loss"]) == {}
