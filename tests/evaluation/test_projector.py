"""Projector data: read back as TensorBoard itself serves it."""

import io
import json
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from tensorboard.backend.event_processing.data_provider import (
    MultiplexerDataProvider,
)
from tensorboard.backend.event_processing.plugin_event_multiplexer import (
    EventMultiplexer,
)
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from werkzeug.test import Client

from tfcomp.config.errors import RunError
from tfcomp.evaluation.projector import (
    FRAME_SHADE,
    make_sprite,
    write_projector,
)

Stages = dict[str, np.ndarray]
NUM_POINTS = 7
METADATA = {
    "x": np.array([0, 1, 2, 3, 4, 5, np.nan], np.float32),
    "region": ["ID"] * 5 + ["OOD", "tab\tand\nline"],
}
IMAGES = np.zeros((NUM_POINTS, 3, 4, 1))  # [n, H, W, 1]
IMAGES[:, 0, 0, 0] = np.arange(1, NUM_POINTS + 1) / NUM_POINTS  # lower left


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    EventFileWriter(str(folder)).close()
    return folder


@pytest.fixture
def stages(rng: np.random.Generator) -> Stages:
    return {
        "code": rng.normal(size=(NUM_POINTS, 3)).astype(np.float32),
        "block/1": rng.normal(size=(NUM_POINTS, 7)),
        "dead": np.zeros((NUM_POINTS, 2)),
    }


def fetch(log_dir: Path, route: str, **query: str) -> bytes:
    """What TensorBoard's own projector plugin answers, without a port."""
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(log_dir))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(log_dir))
    context = TBContext(data_provider=provider, logdir=str(log_dir))
    apps = ProjectorPlugin(context).get_plugin_apps()
    with Client(apps[f"/{route}"]).get(query_string=query) as response:
        assert response.status_code == 200, response.get_data()
        return response.get_data()


def test_tensorboard_serves_tensors_metadata_and_sprite(
    run_dir: Path, stages: Stages
) -> None:
    write_projector(run_dir, stages, METADATA, IMAGES)
    assert json.loads(fetch(run_dir.parent, "runs")) == ["run"]
    config = json.loads(fetch(run_dir.parent, "info", run="run"))
    infos = {info["tensorName"]: info for info in config["embeddings"]}
    assert list(infos) == list(stages)
    shapes = {name: info["tensorShape"] for name, info in infos.items()}
    assert shapes == {"code": [7, 3], "block/1": [7, 7], "dead": [7, 2]}
    for name in stages:
        tensor = fetch(run_dir.parent, "tensor", run="run", name=name)
        found = np.frombuffer(tensor, np.float32).reshape(shapes[name])
        np.testing.assert_allclose(found, stages[name], rtol=1e-5)
    for name, info in infos.items():
        assert info["sprite"]["singleImageDim"] == [6, 5]  # width, height
        text = fetch(run_dir.parent, "metadata", run="run", name=name).decode()
        header, first, *_, last = lines = text.splitlines()
        assert (header, first) == ("x\tregion", "0\tID")
        assert last == "\ttab and line" and len(lines) == 1 + NUM_POINTS
        png = fetch(run_dir.parent, "sprite_image", run="run", name=name)
        sprite = matplotlib.image.imread(io.BytesIO(png))  # [15, 18, 4]
        expected, _ = make_sprite(IMAGES[..., 0])
        np.testing.assert_allclose(sprite[..., 0] * 255, expected, atol=0.01)


def test_single_column_gets_company(run_dir: Path, stages: Stages) -> None:
    """The browser takes the header of a single column for a point."""
    write_projector(run_dir, stages, {"x": METADATA["x"]}, IMAGES)
    text = (run_dir / "projector" / "metadata.tsv").read_text()
    assert text.splitlines()[:2] == ["x\tindex", "0\t0"]


def test_sprite_runs_row_by_row_and_is_upright() -> None:
    sprite, size = make_sprite(IMAGES[..., 0])
    assert size == (6, 5)
    assert sprite.shape == (3 * 5, 3 * 6) and sprite.dtype == np.uint8
    for index in range(NUM_POINTS):
        row, column = divmod(index, 3)
        cell = sprite[5 * row :, 6 * column :][:5, :6]
        expected = np.full((5, 6), FRAME_SHADE)
        expected[1:-1, 1:-1] = 0
        expected[3, 1] = round(255 * (index + 1) / NUM_POINTS)
        np.testing.assert_array_equal(cell, expected)
    assert not sprite[10:, 6:].any()  # places without an image


def test_sprite_stays_within_the_limit_of_browsers() -> None:
    images = np.full((900, 3, 280), 2.0)  # 30 in a row: 8400 pixels
    sprite, size = make_sprite(images)
    assert size == (142, 4) and sprite.shape == (120, 4260)
    assert set(np.unique(sprite)) == {FRAME_SHADE, 255}


def test_folder_without_event_files_is_refused(
    tmp_path: Path, stages: Stages
) -> None:
    with pytest.raises(RunError, match="event files"):
        write_projector(tmp_path, stages, METADATA, IMAGES)
    assert not list(tmp_path.iterdir())
