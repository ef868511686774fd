"""Decoders of users that cannot be saved are refused before training."""

from pathlib import Path

import pytest

from tfcomp import train
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.training.prepared_models import check_saving

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


def describe(module: str, build: str) -> list[str]:
    """Writes a decoder into the working folder; returns a run's flags."""
    text = LAYERS + build.replace("NAME", module)
    Path(f"{module}.py").write_text(text)
    return ["smoke", f"--plugins={module}", f"--model={module}"]


@pytest.mark.parametrize(
    ("module", "build", "named"),
    [
        ("own_unsaved", BUILD.format(layer="Unsaved"), "'of_mine'.*Unsaved"),
        ("own_network", SUBCLASS, "Network"),
    ],
)
def test_networks_that_cannot_be_saved(module, build, named, working_folder):
    flags = describe(module, build)
    with pytest.raises(RunError, match=f"--model={module}.*{named}") as caught:
        train.main(["train", *flags])
    assert caught.value.status == 2
    assert "\n" not in str(caught.value)

    files = {path.name for path in working_folder.iterdir()}
    assert files <= {f"{module}.py", "__pycache__"}


def test_networks_that_can_be_saved(working_folder):
    flags = describe("own_saved", BUILD.format(layer="Saved"))
    config = parse_config(flags)
    check_saving(config, make_dataset(config))
