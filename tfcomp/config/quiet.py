"""Starts TensorFlow quickly, and keeps its chatter off the terminal.

The C++ runtime writes to file descriptor 2 before its own log level is in
force, so the descriptor itself is held back for as long as that takes.
"""

import contextlib
import gc
import importlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from tfcomp.config.errors import RunError, explain_failure

GPU_FILE = Path("/dev/nvidiactl")
# Kernels of XLA on GPUs that add in a fixed order (docs/gpu_and_cluster.md).
XLA_FLAG = "--xla_gpu_deterministic_ops=true"
# What a shell may have set up for other programs, as ours needs it.
KERAS = {"KERAS_BACKEND": "tensorflow", "TF_USE_LEGACY_KERAS": "0"}
LAYERS = ("tensorflow", "channels_last", "float32")
# Keras imports them if it can, for inputs and wrappers that we do not use.
NEEDLESS = ("matplotlib", "pandas", "sklearn")


@contextlib.contextmanager
def quiet_startup() -> Iterator[None]:
    """Holds back what is written to stderr; shows it if the block crashes.

    What is to be said in one line (`explain_failure`) is no crash.
    Set `TF_CPP_MIN_LOG_LEVEL=0` in the environment to see everything.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with _open_memory() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException as error:
            if explain_failure(error) is None:
                held.seek(0)
                os.write(terminal, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)


@contextlib.contextmanager
def start_tensorflow(is_ours: bool = True) -> Iterator[None]:
    """Imports TensorFlow in little more than half its time, and quietly.

    It spends the rest on packages that nothing here needs of Keras, and on
    looking for garbage among a million new objects that all stay.

    Args:
        is_ours: Whether the process is a command, not somebody's program.

    Raises:
        RunError: If a program has set up Keras before, with other layers.
    """
    with quiet_startup():
        if "keras" not in sys.modules:
            os.environ |= KERAS
            if is_ours and GPU_FILE.exists():
                choose_deterministic_kernels()
            _import_keras()
            tensorflow = importlib.import_module("tensorflow")
            # It looks for GPUs once, and complains where it has no driver.
            tensorflow.config.list_physical_devices()
        # Each run that is analyzed has functions of its own to trace.
        logging.getLogger("tensorflow").addFilter(_is_no_retracing)
        config = sys.modules["keras"].config
        found = config.backend(), config.image_data_format(), config.floatx()
        if found != LAYERS:
            raise RunError(
                f"Keras must be set up as {', '.join(LAYERS)}, it is "
                f"{', '.join(found)} (KERAS_BACKEND, ~/.keras/keras.json)"
            )
        _set_up_gpus(is_ours)
        yield


def choose_deterministic_kernels() -> None:
    """Lets programs of XLA repeat their bits; before TensorFlow starts."""
    given = os.environ.get("XLA_FLAGS", "")
    if "deterministic_ops" not in given:
        os.environ["XLA_FLAGS"] = f"{given} {XLA_FLAG}".strip()


def _is_no_retracing(record: logging.LogRecord) -> bool:
    return "tf.function retracing" not in record.getMessage()


def _set_up_gpus(is_ours: bool) -> None:
    """Lets GPUs compute as exactly as a CPU, and commands repeat their bits.

    TensorFlow rounds factors of products to 10 bits there (TF32), which changes
    metric tensors by up to a quarter of their size (docs/gpu_and_cluster.md).
    """
    config = sys.modules["tensorflow"].config
    if config.list_physical_devices("GPU"):
        config.experimental.enable_tensor_float_32_execution(False)
        if is_ours:  # in a program, random numbers without a seed would fail
            config.experimental.enable_op_determinism()


def _import_keras() -> None:
    absent = [name for name in NEEDLESS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # an import of them fails
    gc.disable()
    try:
        keras = importlib.import_module("keras")
        # Whatever `~/.keras/keras.json` says.
        keras.config.set_image_data_format(LAYERS[1])
        keras.config.set_floatx(LAYERS[2])
    finally:
        gc.enable()
        gc.freeze()
        for name in absent:
            del sys.modules[name]


def _open_memory() -> IO[bytes]:
    """A file that needs no disk, which may be full or read-only."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stderr"), "w+b")
    return tempfile.TemporaryFile()


def show_progress(
    items: Iterable[Any] | None, name: str, unit: str, total: int, **options
) -> Any:
    """A bar on standard error over items; without any, updated by hand.

    Unless options of tqdm say otherwise, it vanishes when it is done, and is
    never seen if that takes less than two seconds (in a log file, thirty).
    """
    from tqdm import tqdm

    is_main = threading.current_thread() is threading.main_thread()
    pause = 0.1 if sys.stderr.isatty() else 30.0
    options = {"leave": False, "delay": max(2.0, pause)} | options
    # Two bars at once would be written over each other.
    options |= {"mininterval": pause, "disable": not is_main}
    options |= {"desc": name, "unit": unit, "total": total}
    return tqdm(items, dynamic_ncols=True, **options)
