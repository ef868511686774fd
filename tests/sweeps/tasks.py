"""Functions that workers of the tests call."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from distributed import utils_comm, worker, worker_state_machine
from distributed.comm import core

from tfcomp.config.errors import RunError
from tfcomp.config.process import check_stop
from tfcomp.models import MODELS
from tfcomp.sweeps.worker_task import Task


def make_task(
    name: str, folder: Path, function: Callable, *arguments: str, **setup
) -> Task:
    log = folder / f"{name}.log"
    return Task(name, function, arguments, log, **setup)


def read_pids(folder: Path) -> list[int]:
    """The processes that tasks have printed."""
    pids = []
    for path in sorted(folder.glob("*.log")):
        words = path.read_text().split()
        pids += [int(word) for word in words if word.isdigit()]
    return pids


def show_process(argv: list[str]):
    print(os.getpid(), flush=True)


def show_environment(argv: list[str]):
    for name in argv[1:]:
        value = os.environ.get(name, "-")
        print(value)
    print(os.getcwd())


def wait_for_file(argv: list[str]):
    """Waits, in epochs of a moment."""
    print(os.getpid(), flush=True)
    while not Path(argv[1]).exists():
        time.sleep(0.05)
        check_stop()


def refuse(argv: list[str]):
    print(os.getpid(), flush=True)
    raise RunError("--depth is bad")


def crash(argv: list[str]):
    print(os.getpid(), flush=True)
    os.write(2, b"from a library\n")
    raise ZeroDivisionError("division by zero")


def draw(argv: list[str]):
    """Prints a number of the state that Keras seeds initial weights from."""
    random.seed(1)
    for module in (utils_comm, worker, worker_state_machine, core):
        module.random.random()  # as the threads of Dask
    print(random.randint(1, 10**9))


def list_models(argv: list[str]):
    print(os.getpid(), *MODELS.names())
