"""Projector data: read back as TensorBoard itself serves it."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
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

METADATA = pd.DataFrame(
    {
        "x": np.array([0, 1, 2, 3, 4, 5, np.nan], np.float32),
        "region": ["ID"] * 5 + ["OOD", "tab\tand\nline"],
    }
)
IMAGES = np.zeros((7, 3, 4, 1))  # [n, H, W, 1]
IMAGES[:, 0, 0, 0] = np.arange(1, 8) / 7  # upper left
STAGES = {
    "code": np.random.default_rng(0).normal(size=(7, 3)),
    "block/1": np.zeros((7, 2)),
}


def open_projector(log_dir: Path) -> Callable[..., bytes]:
    """TensorBoard's own projector plugin, without a port."""
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(log_dir))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(log_dir))
    context = TBContext(
        data_provider=provider,
        logdir=str(log_dir),
    )
    apps = ProjectorPlugin(context).get_plugin_apps()

    def fetch(route: str, **query: str) -> bytes:
        client = Client(apps[f"/{route}"])
        with client.get(query_string=query) as response:
            assert response.status_code == 200
            return response.get_data()

    return fetch


def test_tensorboard_serves_tensors_metadata_and_sprite(tmp_path):
    folder = tmp_path / "run"
    EventFileWriter(str(folder)).close()

    write_projector(folder, STAGES, METADATA, IMAGES)

    fetch = open_projector(tmp_path)
    assert json.loads(fetch("runs")) == ["run"]
    embeddings = json.loads(fetch("info", run="run"))["embeddings"]
    for info, stage in zip(embeddings, STAGES, strict=True):
        query = {"run": "run", "name": stage}
        values = STAGES[stage]
        assert info["tensorName"] == stage
        assert info["tensorShape"] == list(values.shape)
        tensor = np.frombuffer(fetch("tensor", **query), np.float32)
        assert_allclose(tensor.reshape(values.shape), values, rtol=1e-5)

        lines = fetch("metadata", **query).decode().splitlines()
        assert lines[:2] == ["x\tregion", "0\tID"]
        assert lines[7:] == ["\ttab and line"]

        assert info["sprite"]["singleImageDim"] == [4, 3]  # width, height
        file = io.BytesIO(fetch("sprite_image", **query))
        sprite = np.asarray(Image.open(file))
        rows = sprite.reshape(3, 3, 3, 4)  # three rows of three tiles
        tiles = rows.swapaxes(1, 2).reshape(9, 3, 4)
        expected = np.zeros((9, 3, 4))
        expected[:7] = 255 * IMAGES[..., 0]
        assert_allclose(tiles, expected, atol=0.5)


def test_large_images_are_thinned():
    images = np.full((900, 3, 280, 1), 2.0)  # 30 in a row have 8400 pixels

    sprite, size = make_sprite(images)

    assert size == (140, 2)
    assert sprite.shape == (30 * 2, 30 * 140)
    assert (sprite == 255).all()
