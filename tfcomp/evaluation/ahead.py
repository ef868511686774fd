"""What a report needs is computed while its pictures are drawn.

Drawing is Python and holds its lock; linear algebra and TensorFlow do not. So
two threads compute what takes long; who asks for a result meanwhile waits.
"""

import contextlib
import ctypes
import itertools
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from threadpoolctl import threadpool_limits

from tfcomp.evaluation.run_analysis import RunAnalysis

# What takes long, in the order in which it is begun: sections that show it, or
# none for the first screen, and how it is computed where it applies. Two rows
# of about the same time.
LANES: tuple[dict[tuple[str, ...], Callable[[RunAnalysis], Any]], ...] = (
    {
        ("tuning", "manifolds"): lambda study: study.for_pairs.numbers,
        ("explorer",): lambda study: (
            study.explored.metrics,
            study.explored.shown_units,
            study.explored.evaluation,
        ),
        (): lambda study: study.references,
    },
    {
        ("layers", "explorer"): lambda study: study.metrics,
        ("superposition",): lambda study: study.has_hole and study.composed,
        ("kernels",): lambda study: (
            study.has_hole and study.is_plane and study.kernel_fits
        ),
        ("interactions",): lambda study: (
            study.interactions,
            study.similarities,
        ),
    },
)


@contextlib.contextmanager
def computed_ahead(
    studies: Sequence[RunAnalysis], sections: Collection[str]
) -> Iterator[Callable[[Callable[[], Any]], Callable[[], Any]]]:
    """Computes what sections show of studies while the block runs.

    What fails is left to whoever asks for it next; what is not done when the
    block is interrupted is given up. Gives what begins a further computation,
    which is called for its result.
    """
    threads = [
        threading.Thread(target=_compute, args=(lane, studies, sections))
        for lane in LANES
    ]

    def begin(compute: Callable[[], Any]) -> Callable[[], Any]:
        found: Future[Any] = Future()
        threads.append(threading.Thread(target=_settle, args=(found, compute)))
        threads[-1].start()
        return found.result

    interval = sys.getswitchinterval()
    # Between two steps of linear algebra a thread waits for whoever draws.
    sys.setswitchinterval(interval / 20)
    # Limits of single calls would end those of calls at the same time.
    with threadpool_limits(1, "blas"):
        for thread in threads:
            thread.start()
        try:
            yield begin
            for thread in threads:
                thread.join()
        finally:
            for thread in threads:
                _give_up(thread)
            sys.setswitchinterval(interval)


def _settle(future: Future[Any], compute: Callable[[], Any]) -> None:
    try:
        future.set_result(compute())
    except BaseException as error:
        future.set_exception(error)


def _compute(
    lane: Mapping[tuple[str, ...], Callable[[RunAnalysis], Any]],
    studies: Sequence[RunAnalysis],
    sections: Collection[str],
) -> None:
    wanted = [
        compute
        for shown_in, compute in lane.items()
        if not shown_in or not set(shown_in).isdisjoint(sections)
    ]
    with contextlib.suppress(SystemExit):
        for study, compute in itertools.product(studies, wanted):
            with contextlib.suppress(Exception):
                compute(study)


def _give_up(thread: threading.Thread) -> None:
    """Ends a thread between two steps of its computation, as a batch; where the
    exception is lost, as in the callback of a weak reference, again."""
    report = sys.unraisablehook
    sys.unraisablehook = lambda found: (
        None if found.exc_type is SystemExit else report(found)
    )
    while thread.is_alive():
        found = ctypes.c_ulong(thread.ident)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            found, ctypes.py_object(SystemExit)
        )
        thread.join(1.0)
    sys.unraisablehook = report
