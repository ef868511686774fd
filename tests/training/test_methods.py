"""The paragraph on methods has the numbers of the network and its training."""

import re

import keras
import pytest

from tests.datasets.own_tables import make_data
from tfcomp.config.run_flags import parse_config
from tfcomp.models.registry import MODELS
from tfcomp.training.export import describe_methods


def describe(*arguments: str) -> tuple[str, keras.Model]:
    config = parse_config(["--flagfile=smoke.flags", *arguments])
    dataset = make_data("smoke", *arguments)
    model = MODELS.get(config.model.model).load()(config, dataset)
    return describe_methods(model, config, dataset), model


def test_layers_weights_and_steps_are_those_of_the_network():
    text, model = describe("--depth=2", "--width=5", "--epochs=3", "--seed=9")
    kernels = set()
    for layer in model.layers:
        if "kernel_size" in layer.get_config():
            height, width = layer.get_config()["kernel_size"]
            kernels.add(f"kernel {height} x {width}")
    assert f"{model.count_params():,} weights" in text
    for kernel in kernels:
        assert kernel in text
    assert "5 channels" in text
    assert "seed 9" in text

    steps, epochs, per_epoch = map(
        int, re.findall(r"(\d+) steps \((\d+) epochs of (\d+)\)", text)[0]
    )
    assert epochs == 3
    assert steps == epochs * per_epoch


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--model=low_rank", "--rank=4"], "penalties"),
        (["--model=low_rank", "--rank=4"], "rank 4"),
        (["--decay=cosine"], "cosine"),
        (["--clip_norm=2"], "norm of 2"),
        (["--plateau_patience=6"], "6 epochs"),
        (["--l1_weight=0.5"], "0.5 times"),
    ],
)
def test_what_was_set_is_said(arguments, word):
    text, _ = describe(*arguments)
    plain, _ = describe()
    assert word in text
    assert word not in plain
