"""One thread for linear algebra.

The same bits come out on every number of cores, and a function is not many
times slower when other processes (a sweep's workers) hold the cores that
waiting threads spin for. For matrices of thousands of rows, one thread is
about as fast as many.
"""

from collections.abc import Callable

from threadpoolctl import threadpool_limits


def single_threaded(function: Callable) -> Callable:
    """Limits the linear algebra library to one thread during the calls."""
    return threadpool_limits.wrap(limits=1, user_api="blas")(function)
