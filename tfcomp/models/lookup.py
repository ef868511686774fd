"""Rows of a weight by index, in the form that suits the device."""

import contextlib
from collections.abc import Iterator

from keras import KerasTensor, ops

# Rows of a weight up to which a product costs less than a scatter.
MOST_ROWS = 1024
_by_product = False


@contextlib.contextmanager
def use_products() -> Iterator[None]:
    """Lets what is traced inside of the block look rows up by products.

    The gradient of `take` is a scatter, which deterministic kernels of a GPU
    add row by row. That of a product is a product. All threads are affected,
    since a distribution strategy traces replicas in threads of its own.
    """
    global _by_product
    before, _by_product = _by_product, True
    try:
        yield
    finally:
        _by_product = before


def take_rows(weight: KerasTensor, rows: KerasTensor) -> KerasTensor:
    """Rows [batch, ...] of a weight [V, ...] by their indices [batch].

    The values are the same in both forms. Gradients add up in another order.
    """
    if not _by_product or weight.shape[0] > MOST_ROWS:
        return ops.take(weight, rows, axis=0)
    code = ops.one_hot(rows, weight.shape[0], dtype=weight.dtype)  # [batch, V]
    return ops.tensordot(code, weight, axes=1)
