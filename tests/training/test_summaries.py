"""TensorBoard and `history.csv`: tags and contents, read back."""

import errno
import io
from pathlib import Path

import matplotlib.image
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util import tensor_util

from tfcomp.metrics.registry import list_metrics
from tfcomp.storage.run_folder import read_history, read_metrics
from tfcomp.training import monitor
from tfcomp.training.monitor import History

STAGES = ["code", "stage_0", "stage_1", "stage_2", "image"]


@pytest.fixture(scope="module")
def events(smoke_run, read_events) -> EventAccumulator:
    return read_events(smoke_run)


@pytest.fixture(scope="module")
def metrics(smoke_run) -> dict:
    return read_metrics(Path(smoke_run.run_dir))


def read(events: EventAccumulator, tag: str) -> dict[int, object]:
    return {
        event.step: tensor_util.make_ndarray(event.tensor_proto)
        for event in events.Tensors(tag)
    }


def test_scalar_tags_are_few_and_grouped(events, metrics):
    groups = {}
    for tag in events.Tags()["tensors"]:
        group, _, name = tag.partition("/")
        groups.setdefault(group, set()).add(name)
    assert groups.pop("train") == {"loss", "examples_per_second"}
    for subset in ("id", "ood"):
        assert groups.pop(subset) == set(metrics[subset])
    # TensorBoard sorts them: the scores stand above the stages.
    watched = {name for row in metrics["layers"].values() for name in row}
    watched |= {"mixed_share", "relative_contrast", "total_curvature"}
    declared = list_metrics("stage", "stages")
    charted = {m.name for m in declared if m.chart is not None}
    for group in (*watched & charted, "log_volume_map"):
        assert groups.pop(f"stage_{group}") == set(STAGES)
    first = {"id_error", "map", "ood_error", "samples_id", "samples_ood"}
    # TensorBoard opens on the first group that it shows.
    shown = [group for group in groups if not group.startswith("_")]
    assert min(shown) == "answer" and groups.pop("answer") == first
    assert set(groups) <= {"_hparams_"}


def test_hyperparameters_are_those_that_say_something(smoke_run, events):
    metadata = events.SummaryMetadata("_hparams_/session_start_info")
    data = HParamsPluginData.FromString(metadata.plugin_data.content)
    shown = set(data.session_start_info.hparams)
    assert {"region", "encoding", "model", "seed", "epochs"} <= shown
    assert "adam_epsilon" not in shown and len(shown) < 25
    metadata = events.SummaryMetadata("_hparams_/experiment")
    content = metadata.plugin_data.content
    experiment = HParamsPluginData.FromString(content).experiment
    assert {info.name for info in experiment.hparam_infos} == shown
    tags = [metric.name.tag for metric in experiment.metric_infos]
    assert tags == ["id/relative_mse", "ood/relative_mse"]


def test_images_are_drawn(events, smoke_run):
    """Of the trained network; samples, more than on a card, are also a file."""
    for tag in ("answer/samples_ood", "stage_log_volume_map/code"):
        cards = read(events, tag)
        assert list(cards) == [4]
        width, height, png = cards[4][:3]
        image = matplotlib.image.imread(io.BytesIO(png), format="png")
        assert image.shape[:2] == (int(height), int(width))
        assert image.std() > 0
    with Image.open(Path(smoke_run.run_dir) / "samples.png") as file:
        assert file.width > int(width)


def test_scalars_are_curves_that_end_in_the_final_metrics(events, metrics):
    for subset in ("id", "ood"):
        for name, expected in metrics[subset].items():
            curve = read(events, f"{subset}/{name}")
            assert list(curve) == [1, 2, 3, 4]
            assert curve[4] == pytest.approx(expected, rel=1e-6)
        answer = read(events, f"answer/{subset}_error")
        assert answer == read(events, f"{subset}/relative_mse")
    for stage in STAGES:
        curve = read(events, f"stage_factorization/{stage}")
        assert list(curve) == [2, 4]
        expected = metrics["layers"][stage]["factorization"]
        assert curve[4] == pytest.approx(expected, rel=1e-6)


def test_numbers_are_those_of_tensorboard(smoke_run, events):
    rows = read_history(Path(smoke_run.run_dir) / "history.csv")
    for tag in ("train/loss", "id/relative_mse", "ood/relative_mse"):
        curve = {epoch: row[tag] for epoch, row in rows.items()}
        assert curve == read(events, tag)


@pytest.mark.parametrize("content", [b"", b"epoch,a\n1,", b"\xff"])
def test_a_damaged_file_is_named_and_begun_anew(content, tmp_path, capsys):
    file = tmp_path / "history.csv"
    file.write_bytes(content)
    History(tmp_path).add(3, {"train/loss": 0.5})
    assert read_history(file) == {3: {"train/loss": 0.5}}
    assert f"no curves from {file}" in capsys.readouterr().err


def test_full_disks_are_no_failed_picture():
    with pytest.raises(OSError):
        with monitor.go_on_without_pictures("samples"):
            raise OSError(errno.ENOSPC, "full")
