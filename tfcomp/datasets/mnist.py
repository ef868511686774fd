"""One MNIST training image by class and index, through TFDS.

Nothing is downloaded behind the user's back: a machine without a network
must answer at once, and TFDS would wait and retry.
"""

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_hash import find_data_dir
from tfcomp.config.errors import ConfigError, RunError

# Examples that are looked at together, which is quicker than one by one.
_BATCH_SIZE = 256


def has_mnist(folder: Path) -> bool:
    """Whether MNIST is in a TFDS data directory; reads nothing of it."""
    return bool(list(folder.glob("mnist/*/dataset_info.json")))


def load_digit(data_dir: str, digit: int, index: int) -> np.ndarray:
    """A training image, float32 [28, 28] in [0, 1], row 0 at the top.

    Its index is that among the training examples of its class, in TFDS order;
    the directory "" is where TFDS would look.

    Raises:
        RunError: If MNIST is not there or cannot be read; one line.
        ConfigError: If the class has fewer examples.
    """
    return _load_digit(find_data_dir(data_dir), digit, index)


@functools.lru_cache(maxsize=32)
def _load_digit(folder: Path, digit: int, index: int) -> np.ndarray:
    # Its absence is told without the time that importing TFDS takes.
    if not has_mnist(folder):
        raise RunError(
            f"--data_dir: no MNIST in {folder}; get it with python -c "
            "\"import tensorflow_datasets as t; t.load('mnist', "
            f"data_dir='{folder}')\", or try --digit_source=stand_in"
        )
    try:
        image, count = _scan(folder, digit, index)
    except Exception as error:  # whatever a damaged file leads to
        reason = _shorten(error)
        raise RunError(
            f"--data_dir: MNIST in {folder} cannot be read ({reason}); "
            f"remove {folder / 'mnist'} and get it again"
        ) from error
    if image is None:
        rule = f"must be less than {count}, the training examples of {digit}"
        raise ConfigError("digit_index", rule, index)
    return image


def _shorten(error: Exception) -> str:
    # TensorFlow puts the names of graph nodes around what went wrong.
    text = re.sub(r"\{\{.*?\}\}|\[Op:.*", "", str(error), flags=re.DOTALL)
    lines = text.strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _scan(
    folder: Path, digit: int, index: int
) -> tuple[np.ndarray | None, int]:
    # The image, or None and the number of examples of the class. Only the
    # image that is asked for is decoded.
    import tensorflow as tf
    import tensorflow_datasets as tfds

    examples = tfds.load(
        "mnist",
        split="train",
        data_dir=folder,
        download=False,
        shuffle_files=False,
        decoders={"image": tfds.decode.SkipDecoding()},
        # Small data sets are cached, which warns where reading stops early.
        read_config=tfds.ReadConfig(try_autocache=False),
    )
    count = 0
    batch: Any
    for batch in examples.batch(_BATCH_SIZE):
        rows = np.flatnonzero(batch["label"].numpy() == digit)
        if index < count + len(rows):
            encoded = batch["image"][rows[index - count]]
            pixels = np.asarray(tf.io.decode_image(encoded, channels=1))
            if pixels.shape != (28, 28, 1):
                raise ValueError(f"an image of shape {pixels.shape}")
            return pixels[..., 0].astype(np.float32) / 255.0, index + 1
        count += len(rows)
    return None, count
