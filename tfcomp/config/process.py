"""This process: its machine, its start of TensorFlow, and its end.

TensorFlow is started quickly, and its chatter is kept off the terminal. The C++
runtime writes to file descriptor 2 before its own log level is in force, so the
descriptor itself is held back for as long as that takes.

SIGTERM and SIGHUP end a command, however often Python loses the request: an
exception that a handler raises is swallowed in callbacks of the garbage
collector, in `__del__`, and by a library's `except:`. It is therefore raised
again until it has left the command.
"""

import contextlib
import ctypes
import functools
import gc
import importlib
import io
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tfcomp.config.errors import RunError, explain_failure

GPU_FILE = Path("/dev/nvidiactl")
# Kernels of XLA on GPUs that add in a fixed order (docs/sweeps.md).
XLA_FLAG = "--xla_gpu_deterministic_ops=true"
# Overrides settings that the shell has for other programs.
KERAS = {"KERAS_BACKEND": "tensorflow", "TF_USE_LEGACY_KERAS": "0"}
LAYERS = ("tensorflow", "channels_last", "float32")
# Keras imports them if it can, for inputs and wrappers that we do not use.
# Without them TensorFlow and Keras start in two thirds of the time.
NEEDLESS = ("matplotlib", "pandas", "sklearn")
# New objects after which Python looks for garbage. Its own number, 700, makes
# the search a tenth of a report: traced functions and figures have a million.
NEW_OBJECTS = 50_000
PREFIX = "tfcomp-"
IsStopped = Callable[[], bool]
_checks: list[IsStopped] = []
SHELL = 128  # shells add the number of a signal to it
REPEAT_SECONDS = 0.05  # until the exception is raised again
# `timeout` tells the process and then its group: two signals, one request.
SAME_REQUEST_SECONDS = 1.0


def count_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_memory() -> int:
    """Returns the bytes of memory of this machine or container."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text()
        return min(memory, int(limit))
    except (OSError, ValueError):
        return memory  # no limit: there is no file, or it says "max"


@functools.cache
def count_device_memory() -> int:
    """Returns the bytes that TensorFlow may use on the first GPU, or here."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib

    if not tf.config.list_physical_devices("GPU"):
        return count_memory()
    devices = device_lib.list_local_devices()
    return max(d.memory_limit for d in devices if d.device_type == "GPU")


def keep_freed_memory() -> None:
    """Makes the GNU C library reuse memory: else each step has new pages."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: the most that it accepts
        mallopt(-1, 512 << 20)  # M_TRIM_THRESHOLD


@contextlib.contextmanager
def make_private_folder(parent: Path | None = None) -> Iterator[Path]:
    """Makes a temporary folder for one block, which only its user can enter."""
    with tempfile.TemporaryDirectory(  # mode 0700
        prefix=PREFIX, dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


class StopRequested(BaseException):
    """The computation was asked to stop: its checkpoints are kept."""


@contextlib.contextmanager
def stop_when(is_stopped: IsStopped) -> Iterator[None]:
    """Makes `check_stop` ask `is_stopped` during the block."""
    _checks.append(is_stopped)
    try:
        yield
    finally:
        _checks.remove(is_stopped)


def check_stop() -> None:
    """Raises StopRequested on request; trainings ask between epochs."""
    if any(is_stopped() for is_stopped in _checks):
        raise StopRequested


@contextlib.contextmanager
def quiet_startup() -> Iterator[None]:
    """Hides stderr, unless the block crashes or TF_CPP_MIN_LOG_LEVEL is 0."""
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception as error:
            if explain_failure(error) is None:
                held.seek(0)
                os.write(terminal, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)


@contextlib.contextmanager
def start_tensorflow(is_cli: bool = True) -> Iterator[None]:
    """Imports TensorFlow quietly; `is_cli` is False in a user's program."""
    with quiet_startup():
        if "keras" not in sys.modules:
            os.environ |= KERAS
            if is_cli:
                gc.set_threshold(NEW_OBJECTS)
            if is_cli and GPU_FILE.exists():
                choose_deterministic_kernels()
            _import_keras()
            tensorflow = importlib.import_module("tensorflow")
            # It looks for GPUs once, and complains where it has no driver.
            tensorflow.config.list_physical_devices()
        # Each run that is analyzed has functions of its own to trace.
        logging.getLogger("tensorflow").addFilter(_is_no_retracing)
        config = sys.modules["keras"].config
        settings = (
            config.backend(),
            config.image_data_format(),
            config.floatx(),
        )
        if settings != LAYERS:
            raise RunError(
                f"Keras must be set up as {', '.join(LAYERS)}, it is "
                f"{', '.join(settings)} (KERAS_BACKEND, ~/.keras/keras.json)"
            )
        config = sys.modules["tensorflow"].config
        if config.list_physical_devices("GPU"):
            # TF32 changes metric tensors by up to a quarter of their size.
            config.experimental.enable_tensor_float_32_execution(False)
            if is_cli:  # in a program, random numbers without a seed would fail
                config.experimental.enable_op_determinism()
        yield


def choose_deterministic_kernels() -> None:
    """Makes XLA deterministic; call it before TensorFlow starts."""
    given = os.environ.get("XLA_FLAGS", "")
    if "deterministic_ops" not in given:
        os.environ["XLA_FLAGS"] = f"{given} {XLA_FLAG}".strip()


def _is_no_retracing(record: logging.LogRecord) -> bool:
    return "tf.function retracing" not in record.getMessage()


def _import_keras() -> None:
    absent = [name for name in NEEDLESS if name not in sys.modules]
    for name in absent:  # an import of it fails
        sys.modules[name] = None  # type: ignore[assignment]
    was_enabled = gc.isenabled()
    gc.disable()  # a million objects stay: a fifth of the time of a start
    try:
        keras = importlib.import_module("keras")
        # Whatever `~/.keras/keras.json` says.
        keras.config.set_image_data_format(LAYERS[1])
        keras.config.set_floatx(LAYERS[2])
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
        for name in absent:
            del sys.modules[name]


def show_progress(
    items: Iterable[Any] | None, name: str, unit: str, total: int, **options
) -> Any:
    """Returns a progress bar on standard error.

    Args:
        items: What it counts; None for a bar that is updated by hand.
        name: What is done.
        unit: The name of an item.
        total: The number of items.
        **options: Of `tqdm`.
    """
    from tqdm import tqdm

    is_main = threading.current_thread() is threading.main_thread()
    pause = 0.1 if sys.stderr.isatty() else 30.0
    options = {"leave": False, "delay": max(2.0, pause)} | options
    return tqdm(
        items,
        desc=name,
        unit=unit,
        total=total,
        mininterval=pause,
        dynamic_ncols=True,
        disable=not is_main,  # two bars would be written over each other
        **options,
    )


def exit_on_user_error(main: Callable[[list[str]], int]) -> None:
    """Calls `main(sys.argv)` and exits with its status, as shells number it."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # tests replace them
            stream.reconfigure(errors="backslashreplace")

    line = ""
    status: Any = 0
    try:
        with end_on_signals():
            status = main(sys.argv)
            sys.stdout.flush()
    except Terminated as end:
        status = end.code
    except KeyboardInterrupt as end:
        # Its arguments say how to go on.
        line = ": ".join(["interrupted", *map(str, end.args)])
        status = 130
    except BrokenPipeError:  # the reader has ended, as in `| head`
        status = 141
    except Exception as error:
        explained = explain_failure(error)
        if explained is None:
            raise
        message, status = explained
        line = f"error: {message}"

    try:
        sys.stdout.flush()
    except OSError:  # Python would try once more at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if line:
        print(line, file=sys.stderr, flush=True)
    sys.exit(status)


def _open_missing_streams() -> None:
    """Opens what a shell has closed (`2>&-`), for which Python has None."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:  # the file gets the free number
            stream = open(os.devnull, mode, encoding="utf-8")
            setattr(sys, name, stream)


class Terminated(SystemExit):
    """SIGTERM or SIGHUP: files and folders are closed on the way out.

    Args:
        number: The signal; `code` is the status that shells give it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(SHELL + number)


@contextlib.contextmanager
def end_on_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP leave a block by `Terminated`; later ones kill.

    `nohup` lets a command ignore SIGHUP, which stays.

    Raises:
        Terminated: A signal came, even if a library turned the exception into
            one of its own.
    """
    request = _Request()
    signal.signal(signal.SIGTERM, request.receive)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, request.receive)
    try:
        yield
    except BaseException as error:
        if request.time is None:
            raise
        raise Terminated(request.number) from error
    finally:
        request.finish()


class _Request:
    """The request to end, from the first signal until the block is left."""

    def __init__(self) -> None:
        self.time: float | None = None
        self.number = int(signal.SIGTERM)
        self._is_finished = False

    def receive(self, number: int, _: object) -> None:
        """Handles a signal."""
        now = time.monotonic()
        if self.time is None and not self._is_finished:
            self.time = now
            self.number = number
            # Exceptions that are swallowed are printed; this one is repeated.
            sys.unraisablehook = _print_nothing
            signal.signal(signal.SIGALRM, self._repeat)
            signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS, REPEAT_SECONDS)
            raise Terminated(number)

        if self.time is None or now - self.time > SAME_REQUEST_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def finish(self) -> None:
        """Stops the repetition; what the process does now is its end."""
        self._is_finished = True
        if self.time is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _repeat(self, *_: object) -> None:
        if not (self._is_finished or _is_unwinding()):
            raise Terminated(self.number)


def _is_unwinding() -> bool:
    """Checks whether `finally` blocks or `except` clauses are at work."""
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, Terminated):
            return True
        error = error.__context__
    return False


def _print_nothing(_: object) -> None:
    pass
