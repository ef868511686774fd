"""Decoders of users that cannot be saved are refused before training."""

from pathlib import Path

import pytest

from tfcomp import train
from tfcomp.config.errors import RunError

FLAGS = (
    "--flagfile=smoke.flags --grid_size=8 --region=square:3-5 --epochs=1 "
    "--steps_per_epoch=2 --eval_every=0 --layerwise_every=0 --nopictures "
    "--noexport"
).split()
LAYERS = """
import keras
from tfcomp.models import MODELS
from tfcomp.models.registry import make_code

class Unsaved(keras.layers.Layer):
    def __init__(self, units, **options):
        super().__init__(**options)
        self.dense = keras.layers.Dense(units)
    def call(self, inputs):
        return self.dense(inputs)

@keras.saving.register_keras_serializable("own")
class Saved(Unsaved):
    def build(self, shape):
        self.dense.build(shape)
    def get_config(self):
        return super(Unsaved, self).get_config() | {"units": self.dense.units}

class Network(keras.Model):
    def call(self, inputs):
        return inputs
"""
BUILD = """
@MODELS.register("NAME")
def build(config, dataset):
    factors, code = make_code(config, dataset)
    size = config.data.grid_size
    pixels = {layer}(size * size, name="of_mine")(code)
    image = keras.layers.Reshape((size, size, 1), name="image")(pixels)
    return keras.Model(factors, image)
"""
SUBCLASS = """
@MODELS.register("NAME")
def build(config, dataset):
    return Network()
"""


def run(module: str, build: str) -> int:
    """Trains a decoder of a module in the working folder."""
    text = LAYERS + build.replace("NAME", module)
    Path(f"{module}.py").write_text(text)
    own = [f"--plugins={module}", f"--model={module}"]
    return train.main(["train", *FLAGS, *own])


@pytest.mark.parametrize(
    ("module", "build", "named"),
    [
        ("own_unsaved", BUILD.format(layer="Unsaved"), "'of_mine'.*Unsaved"),
        ("own_network", SUBCLASS, "Network"),
    ],
)
def test_networks_that_cannot_be_saved(module, build, named, working_folder):
    with pytest.raises(RunError, match=f"--model={module}.*{named}") as caught:
        run(module, build)
    assert caught.value.status == 2
    assert "\n" not in str(caught.value)

    files = {path.name for path in working_folder.iterdir()}
    assert files <= {f"{module}.py", "__pycache__"}


def test_networks_that_can_be_saved(working_folder):
    assert run("own_saved", BUILD.format(layer="Saved")) == 0
    assert (working_folder / "tensorboard_logs/smoke/metrics.json").exists()
