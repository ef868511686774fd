"""Temporary files, and what a shell has set up for other programs."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import keras
import pytest

from tfcomp.config import process
from tfcomp.config.errors import RunError
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_folder_is_private_and_removed(place: Path):
    with process.make_private_folder() as folder:
        assert folder.parent == place
        assert folder.name.startswith(process.PREFIX)
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "below").mkdir()
    assert not os.listdir(place)


# A command that draws.
DRAW = """
import sys
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_flags import Command
def draw(settings):
    from matplotlib.figure import Figure
    Figure().savefig(sys.argv[1])
    return 0
exit_on_user_error(lambda argv: Command('Draws.', {}, draw)(argv[:1]))
"""


def test_a_home_that_cannot_be_written(place: Path, tmp_path: Path):
    """matplotlib makes a folder of its own, and says so."""
    picture = tmp_path / "picture.png"
    result = subprocess.run(
        [sys.executable, "-c", DRAW, picture],
        capture_output=True,
        text=True,
        env=os.environ | {"HOME": "/dev/null", "MPLCONFIGDIR": "/dev/null"},
    )
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    assert picture.stat().st_size > 0
    assert not os.listdir(place)


# Starts TensorFlow, loads the network of a run with the layers alone, and sets
# a machine with a GPU up, as far as it is set up there.
START = """
import sys
from tfcomp.config.process import start_tensorflow
with start_tensorflow():
    import keras, tensorflow as tf
import tfcomp.layers
keras.models.load_model(sys.argv[1])
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
