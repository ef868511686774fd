"""TensorBoard and `history.csv`: tags and contents, read back."""

import errno
import io
from pathlib import Path

import matplotlib.image
import pytest
from PIL import Image
from pytest import approx
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util import tensor_util

from tfcomp.metrics.registry import list_metrics
from tfcomp.storage.run_folder import read_history, read_metrics
from tfcomp.training import monitor
from tfcomp.training.experiment import train_and_evaluate
from tfcomp.training.monitor import History

STAGES = ["code", "stage_0", "stage_1", "stage_2", "image"]


@pytest.fixture(scope="module")
def events(smoke_run, read_events) -> EventAccumulator:
    return read_events(smoke_run)


@pytest.fixture(scope="module")
def metrics(smoke_run) -> dict:
    return read_metrics(Path(smoke_run.run_dir))


def read(
    events: EventAccumulator,
    tag: str,
) -> dict[int, object]:
    return {
        event.step: tensor_util.make_ndarray(event.tensor_proto)
        for event in events.Tensors(tag)
    }


def test_scalar_tags_are_few_and_grouped(events, metrics) -> None:
    groups: dict[str, set] = {}
    for tag in events.Tags()["tensors"]:
        group, _, name = tag.partition("/")
        groups.setdefault(group, set()).add(name)

    assert groups.pop("train") == {"loss", "examples_per_second"}
    for subset in ("id", "ood"):
        assert groups.pop(subset) == set(metrics[subset])

    names = {"mixed_share", "relative_contrast", "total_curvature"}
    names |= set(metrics["layers"]["image"])
    for metric in list_metrics("stage", "stages"):
        if metric.chart is not None and metric.name in names:
            assert groups.pop(f"stage_{metric.name}") == set(STAGES)
    assert groups.pop("stage_log_volume_map") == set(STAGES)

    # TensorBoard sorts groups and opens on the first that it shows.
    assert min(name for name in groups if name[0] != "_") == "answer"
    answer = {"errors", "map", "samples_id", "samples_ood"}
    assert groups.pop("answer") == answer
    assert set(groups) <= {"_hparams_"}


def read_hparams(
    events: EventAccumulator,
    tag: str,
) -> HParamsPluginData:
    metadata = events.SummaryMetadata(f"_hparams_/{tag}")
    return HParamsPluginData.FromString(metadata.plugin_data.content)


def test_hyperparameters_are_those_that_say_something(events) -> None:
    session = read_hparams(events, "session_start_info").session_start_info
    experiment = read_hparams(events, "experiment").experiment

    names = set(session.hparams)
    assert {"region", "encoding", "model", "seed", "epochs"} <= names
    assert "adam_epsilon" not in names
    assert len(names) < 25
    assert {info.name for info in experiment.hparam_infos} == names
    tags = [metric.name.tag for metric in experiment.metric_infos]
    assert tags == ["id/relative_mse", "ood/relative_mse"]


@pytest.mark.parametrize(
    "tag",
    ["answer/samples_ood", "stage_log_volume_map/code"],
)
def test_images_are_rendered(tag, events) -> None:
    width, height, png = read(events, tag)[2][:3]

    image = matplotlib.image.imread(io.BytesIO(png), format="png")

    assert image.shape[:2] == (int(height), int(width))
    assert image.std() > 0


def test_images_of_the_last_epoch_are_a_larger_file(events, smoke_run) -> None:
    width = read(events, "answer/samples_ood")[2][0]
    with Image.open(Path(smoke_run.run_dir) / "samples.png") as file:
        assert file.width > int(width)


def test_last_scalars_are_the_final_metrics(events, metrics) -> None:
    epochs = metrics["train"]["epochs"]
    for subset in ("id", "ood"):
        values = read(events, f"{subset}/mse")
        assert list(values) == [epochs]  # one point, which nothing smooths
        assert values[epochs] == approx(metrics[subset]["mse"], rel=1e-6)

    for stage in STAGES:
        value = read(events, f"stage_factorization/{stage}")[epochs]
        expected = metrics["layers"][stage]["factorization"]
        assert value == approx(expected, rel=1e-6)


def test_numbers_are_those_of_tensorboard(smoke_run, events) -> None:
    rows = read_history(Path(smoke_run.run_dir) / "history.csv")

    assert list(rows) == [1, 2, 3, 4]
    losses = {epoch: row["train/loss"] for epoch, row in rows.items()}
    assert read(events, "train/loss") == losses
    for tag in ("id/relative_mse", "ood/relative_mse"):
        # Few scores are one point in TensorBoard.
        assert read(events, tag) == {4: rows[4][tag]}


@pytest.mark.parametrize("content", [b"", b"epoch,a\n1,", b"\xff"])
def test_a_damaged_file_is_named_and_begun_anew(
    content, tmp_path, capsys
) -> None:
    file = tmp_path / "history.csv"
    file.write_bytes(content)
    History(tmp_path).add(3, {"train/loss": 0.5})

    assert read_history(file) == {3: {"train/loss": 0.5}}
    assert f"no curves from {file}" in capsys.readouterr().err


def test_pictures_that_fail_leave_the_numbers(
    make_smoke, read_events, monkeypatch, capsys
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Failed to process string with tex")

    monkeypatch.setattr(monitor.pictures, "picture_samples", fail)
    config = make_smoke("--pictures", "--epochs=1", "--model=mlp", "--width=4")

    train_and_evaluate(config)

    folder = Path(config.run_dir)
    assert read_metrics(folder)["ood"]["mse"] > 0
    assert not (folder / "samples.png").exists()
    tags = set(read_events(config).Tags()["tensors"])
    assert "ood/mse" in tags
    assert "answer/samples_id" not in tags
    assert "no pictures" in capsys.readouterr().err


def test_full_disks_are_no_failed_picture() -> None:
    with pytest.raises(OSError):
        with monitor.go_on_without_pictures("samples"):
            raise OSError(errno.ENOSPC, "full")
