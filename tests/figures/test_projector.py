"""Projector data: read back as TensorBoard itself serves it."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
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

from tfcomp.figures.projector import make_sprite, write_projector

NUM_POINTS = 7
METADATA = pd.DataFrame(
    {
        "x": np.array([0, 1, 2, 3, 4, 5, np.nan], np.float32),
        "region": ["ID"] * 5 + ["OOD", "tab\tand\nline"],
    }
)
IMAGES = np.zeros((NUM_POINTS, 3, 4, 1))  # [n, H, W, 1]
IMAGES[:, 0, 0, 0] = np.arange(1, NUM_POINTS + 1) / NUM_POINTS  # upper left


def fetch(log_dir: Path, route: str, **query: str) -> bytes:
    """Answers of TensorBoard's own projector plugin, without a port."""
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
    tmp_path: Path, rng: np.random.Generator
) -> None:
    stages = {
        "code": rng.normal(size=(NUM_POINTS, 3)).astype(np.float32),
        "block/1": rng.normal(size=(NUM_POINTS, 7)),
        "dead": np.zeros((NUM_POINTS, 2)),
    }
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="event files"):
        write_projector(folder, stages, METADATA, IMAGES)
    assert not list(folder.iterdir())
    EventFileWriter(str(folder)).close()
    write_projector(folder, stages, METADATA, IMAGES)
    assert json.loads(fetch(tmp_path, "runs")) == ["run"]
    config = json.loads(fetch(tmp_path, "info", run="run"))
    infos = {info["tensorName"]: info for info in config["embeddings"]}
    assert list(infos) == list(stages)
    for name, info in infos.items():
        assert info["tensorShape"] == [*stages[name].shape]
        tensor = fetch(tmp_path, "tensor", run="run", name=name)
        found = np.frombuffer(tensor, np.float32).reshape(stages[name].shape)
        np.testing.assert_allclose(found, stages[name], rtol=1e-5)
        assert info["sprite"]["singleImageDim"] == [4, 3]  # width, height

        text = fetch(tmp_path, "metadata", run="run", name=name).decode()
        header, first, *_, last = lines = text.splitlines()
        assert (header, first) == ("x\tregion", "0\tID")
        assert last == "\ttab and line" and len(lines) == 1 + NUM_POINTS

        png = fetch(tmp_path, "sprite_image", run="run", name=name)
        sprite = np.asarray(Image.open(io.BytesIO(png)))
        assert sprite.shape == (3 * 3, 3 * 4)  # three in a row
        for index, image in enumerate(IMAGES[..., 0]):
            row, column = divmod(index, 3)
            tile = sprite[3 * row :, 4 * column :][:3, :4]
            np.testing.assert_allclose(tile / 255, image, atol=0.5 / 255)
        assert not sprite[6:, 4:].any()  # places without an image


def test_large_images_are_thinned() -> None:
    images = np.full((900, 3, 280, 1), 2.0)  # 30 in a row have 8400 pixels
    sprite, size = make_sprite(images)
    assert size == (140, 2)
    assert sprite.shape == (30 * 2, 30 * 140)
    assert (sprite == 255).all()
