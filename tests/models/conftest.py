"""A policy of mixed precision."""

from collections.abc import Iterator

import keras
import pytest


@pytest.fixture
def mixed_precision() -> Iterator[None]:
    """Layers that are made meanwhile compute in bfloat16."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(policy)
