"""Temporary files, and what a shell has set up for other programs."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from tfcomp.config import process
from tfcomp.config.errors import RunError
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig


def test_folder_is_private_and_removed(tmp_path: Path):
    with process.make_private_folder(tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "below").mkdir()
    assert not os.listdir(tmp_path)


# Starts TensorFlow, loads the network of a run with the layers alone, and sets
# a machine with a GPU up, as far as it is set up there.
START = """
import sys
from tfcomp.config.process import start_tensorflow
with start_tensorflow():
    import keras, tensorflow as tf
import tfcomp.layers
keras.models.load_model(sys.argv[1])
known = {*keras.saving.get_custom_objects()}
from tfcomp.models.loading import import_layers
import_layers()
assert known == {*keras.saving.get_custom_objects()}, "layers are missing"
config = keras.config
print(config.backend(), config.image_data_format(), config.floatx())
tf.config.list_physical_devices = lambda kind="": [0] * (kind == "GPU")
from tensorflow.python.framework.config import is_op_determinism_enabled
for is_cli in (False, True):
    with start_tensorflow(is_cli):
        pass
    rounds = tf.config.experimental.tensor_float_32_execution_enabled()
    print(rounds, is_op_determinism_enabled())
"""
ELSEWHERE = (
    '{"backend": "jax", "image_data_format": "channels_first", '
    '"floatx": "float64"}'
)


def test_keras_is_set_up_as_ours_and_gpus_are_exact(
    tmp_path: Path,
    smoke_run: RunConfig,
):
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text(ELSEWHERE)
    others = {"KERAS_BACKEND": "torch", "TF_USE_LEGACY_KERAS": "1"}
    environment = os.environ | others | {"HOME": str(tmp_path)}
    environment.pop("KERAS_HOME", None)
    network = Path(smoke_run.run_dir) / "model.keras"
    printed = subprocess.check_output(
        [sys.executable, "-c", START, network], env=environment, text=True
    )
    ours = "tensorflow channels_last float32"
    assert printed.splitlines() == [ours, "False False", "False True"]


def test_keras_of_the_program_is_refused():
    """The settings of a program that uses Keras are not changed."""
    keras.config.set_image_data_format("channels_first")
    try:
        with pytest.raises(RunError, match="it is tensorflow, channels_first"):
            with start_tensorflow():
                pass
    finally:
        keras.config.set_image_data_format("channels_last")


@pytest.mark.parametrize(
    "given, expected",
    [
        ("--xla_dump_to=x", f"--xla_dump_to=x {process.XLA_FLAG}"),
        ("--xla_gpu_deterministic_ops=false",) * 2,
    ],
)
def test_kernels_repeat_their_bits_unless_a_user_says_no(
    given: str, expected: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XLA_FLAGS", given)
    process.choose_deterministic_kernels()
    assert os.environ["XLA_FLAGS"] == expected
