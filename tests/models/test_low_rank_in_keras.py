"""The low-rank embedding as a layer of Keras: saved, reloaded, replicated."""

import json
import pathlib
import subprocess
import sys
import textwrap

import keras
import numpy as np

from tests.models.test_low_rank_embedding import (
    COLUMNS,
    NUM_VALUES,
    ROWS,
    make_layer,
)
from tfcomp.models.regularizers import EntropyRegularizer, VarianceRegularizer


def run_python(code: str, *args: str) -> None:
    """Runs code in a process of its own."""
    start = "from tfcomp.config.quiet import *\nwith start_tensorflow(): pass\n"
    subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(code), *args],
        cwd=pathlib.Path(__file__).parents[2],
        check=True,
        timeout=120,
    )


def test_config_round_trip() -> None:
    layer = make_layer(
        "code",
        orthogonal=True,
        coefficient_regularizer=EntropyRegularizer(0.1),
        right_regularizer=VarianceRegularizer(0.2, "unit"),
        coefficient_initializer="ones",
        name="matrices",
    )
    copy = keras.layers.deserialize(
        json.loads(json.dumps(keras.layers.serialize(layer)))
    )
    assert copy.get_config() == layer.get_config()
    assert copy.compute_output_shape((7, 5)) == (7, ROWS, COLUMNS)


def test_plain_model_fits_and_reloads_elsewhere(
    rng: np.random.Generator, tmp_path: pathlib.Path
) -> None:
    keras.utils.set_random_seed(0)
    index = keras.Input((), name="index")
    hidden = make_layer(
        coefficient_regularizer=EntropyRegularizer(1e-3),
        left_regularizer=VarianceRegularizer(1e-3, "unit"),
    )(index)
    model = keras.Model(index, keras.layers.Flatten()(hidden))
    model.compile("adam", "mse")
    x = np.arange(NUM_VALUES).repeat(8).astype("float32")
    target = rng.normal(size=(NUM_VALUES, ROWS * COLUMNS)).astype("float32")
    y = target[x.astype(int)]
    history = model.fit(x, y, batch_size=8, epochs=20, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]

    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "expected.npy", model(x[::4]))
    run_python(
        """
        import sys
        import keras
        import numpy as np
        import tfcomp.models.low_rank_embedding
        import tfcomp.models.regularizers
        model = keras.models.load_model(sys.argv[1] + "/model.keras")
        x = np.arange(5).repeat(2).astype("float32")
        expected = np.load(sys.argv[1] + "/expected.npy")
        np.testing.assert_allclose(model(x), expected, atol=1e-6)
        """,
        str(tmp_path),
    )
