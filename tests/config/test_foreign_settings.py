"""What a shell is set up with for other programs does no harm here."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.quiet import start_tensorflow

START = """
from tfcomp.config.quiet import start_tensorflow
with start_tensorflow():
    import keras
config = keras.config
print(config.backend(), config.image_data_format(), config.floatx())
"""
# A machine with a GPU, for all that is set up there.
GPU = """
import keras, tensorflow as tf
tf.config.list_physical_devices = lambda kind="": {gpus} * (kind == "GPU")
{start}
from tensorflow.python.framework.config import is_op_determinism_enabled
rounds = tf.config.experimental.tensor_float_32_execution_enabled()
print(rounds, is_op_determinism_enabled())
"""
COMMAND = "from tfcomp.config.quiet import *\nwith start_tensorflow(): pass"
PROGRAM = "import tfcomp\ntfcomp.load_run"
ELSEWHERE = (
    '{"backend": "jax", "image_data_format": "channels_first", '
    '"floatx": "float64"}'
)


def test_keras_is_set_up_as_ours(tmp_path: Path) -> None:
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text(ELSEWHERE)
    others = {"KERAS_BACKEND": "torch", "TF_USE_LEGACY_KERAS": "1"}
    environment = os.environ | others | {"HOME": str(tmp_path)}
    environment.pop("KERAS_HOME", None)
    printed = subprocess.check_output(
        [sys.executable, "-c", START], env=environment, text=True
    )
    assert printed.split() == ["tensorflow", "channels_last", "float32"]


@pytest.mark.parametrize(
    ("start", "gpus", "expected"),
    [
        (COMMAND, "[0]", "False True"),
        (PROGRAM, "[0]", "False False"),
        (COMMAND, "[]", "True False"),
    ],
)
def test_gpus_are_exact(start: str, gpus: str, expected: str) -> None:
    """Also where a program has imported TensorFlow and Keras before."""
    code = GPU.format(start=start, gpus=gpus)
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.strip() == expected


def test_keras_of_the_program_is_refused() -> None:
    """It is not changed under somebody who uses it, too."""
    keras.config.set_image_data_format("channels_first")
    try:
        with pytest.raises(RunError, match="it is tensorflow, channels_first"):
            with start_tensorflow():
                pass
    finally:
        keras.config.set_image_data_format("channels_last")
