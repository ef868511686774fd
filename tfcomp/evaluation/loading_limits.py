"""A limit on the weights that a model file can make Keras allocate.

Keras builds the layers that a file describes before it reads their weights: 28
kB can describe layers of 9 GB.
"""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras

from tfcomp.storage.files import DamagedFileError

MAX_RATIO = 20  # of the bytes of all weights and those of the file
MIN_BYTES = 2**26  # any file may describe as much


@contextlib.contextmanager
def limit_weights(path: Path) -> Iterator[None]:
    """Refuses layers whose weights cannot be in a file.

    Raises:
        DamagedFileError: All weights would have far more bytes than the file.
    """
    most = max(MAX_RATIO * path.stat().st_size, MIN_BYTES)
    total = 0
    add_weight = keras.Layer.add_weight

    def add_limited(layer: Any, shape: Any = None, *args: Any, **rest: Any):
        nonlocal total
        sizes = (shape,) if isinstance(shape, int) else shape or ()
        total += 4 * math.prod(int(size) for size in sizes)  # float32
        if total > most:
            reason = f"it describes weights of more than {most >> 20:,} MB"
            raise DamagedFileError(path, reason)
        return add_weight(layer, shape, *args, **rest)

    keras.Layer.add_weight = add_limited
    try:
        yield
    finally:
        keras.Layer.add_weight = add_weight
