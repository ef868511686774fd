"""Shared fixtures; TensorFlow is imported only by the tests that need it."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfcomp.config.process import NEW_OBJECTS
from tfcomp.config.run_flags import parse_config
from tfcomp.storage.files import lock_folder

if TYPE_CHECKING:
    from tfcomp.config.run_config import RunConfig

SHORT = ("--epochs=4", "--eval_every=1", "--layerwise_every=2")
TESTS = Path(__file__).parent
# Their tests take longest. They are started first, so that none of them is left
# for one process at the end.
LONG = """
    pipelines sweeps training test_api.py report reproduction commands
    representations test_readme.py metrics models contrib
""".split()
# Modules with parts that users register and that need no flag.
OWN_PARTS = (
    "tfcomp.metrics.registry",
    "tfcomp.report.page",
    "tfcomp.config.plugins",
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Small networks gain nothing from more, and several tests run at a time.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The processes of a suite import the same modules: one compiles each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A shell lets what it starts in the background ignore Ctrl-C, and so would
# the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


_exits = contextlib.ExitStack()


def pytest_configure():
    """Puts all temporary files of the suite into a folder that goes with it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:  # they are told by the first
        place = tempfile.TemporaryDirectory(
            prefix="tfcomp-tests-", ignore_cleanup_errors=True
        )
        tempfile.tempdir = _exits.enter_context(place)
        os.environ["TMPDIR"] = tempfile.tempdir


def pytest_unconfigure():
    _exits.close()


def pytest_collection_modifyitems(items: list[pytest.Item]):
    folders = {item: item.path.relative_to(TESTS).parts[0] for item in items}
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(folders[item], len(LONG)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Lets Python look for garbage afterwards, and not in what was imported.

    The search takes a twelfth of the time of imports.
    """
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)  # as commands do
    gc.enable()
    return collected


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded source of random numbers."""
    return np.random.default_rng(0)


# Names of modules that lie elsewhere, for each folder. There are thousands, and
# to look at all of them took 8 ms after every test.
_kept_modules: dict[Path, set[str]] = defaultdict(set)


def forget_plugins(folder: Path):
    """Forgets modules of a folder, and all that was registered."""
    for module in OWN_PARTS:
        if module in sys.modules:
            sys.modules[module].unregister_all()
    kept = _kept_modules[folder]
    for name in sys.modules.keys() - kept:
        place = str(getattr(sys.modules[name], "__file__", ""))
        if place.startswith(str(folder)):
            del sys.modules[name]
        else:
            kept.add(name)


@pytest.fixture(autouse=True)
def _forgotten_plugins(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Forgets the modules that a test wrote, and what it registered."""
    yield
    forget_plugins(tmp_path_factory.getbasetemp())


def make_smoke_config(folder: Path, *flags: str) -> RunConfig:
    """The smoke run of a fifth of the epochs, which fits nothing."""
    places = (f"--log_dir={folder}/logs", f"--export_dir={folder}/models")
    return parse_config(["--flagfile=smoke.flags", *SHORT, *places, *flags])


@contextlib.contextmanager
def set_tracing(is_on: bool) -> Iterator[None]:
    """Lets TensorFlow trace its functions in a `with` block, or not."""
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(not is_on)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@pytest.fixture(scope="module")
def untraced() -> Iterator[None]:
    """Traces no functions of TensorFlow in the tests of a module.

    A model is measured once or twice there, and tracing takes longer.
    """
    with set_tracing(False):
        yield


@pytest.fixture
def traced() -> Iterator[None]:
    """Traces functions in one test of a module that is `untraced`."""
    with set_tracing(True):
        yield


@pytest.fixture(scope="module")
def no_pdf() -> Iterator[None]:
    """Ends the PDF files of figures at their head in the tests of a module.

    To embed their fonts takes a third of the time of a report.
    """
    pdf = "tfcomp.figures.exhibits.figure_to_pdf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, lambda _: b"%PDF")
        yield


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """A finished smoke run of the suite; do not write into its folders."""
    from tfcomp.training.experiment import train_and_evaluate

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of the suite, not of this process
    folder = folder / "smoke_run"
    folder.mkdir(exist_ok=True)
    config = make_smoke_config(folder)
    with lock_folder(folder, wait=True):
        if not Path(config.run_dir, "metrics.json").exists():
            with set_tracing(True):
                train_and_evaluate(config)
    return config


@pytest.fixture
def make_smoke(tmp_path: Path) -> Callable[..., RunConfig]:
    """Makes a smoke run with more flags, which has not been started."""
    quick = "--pictures=false --export=false --layerwise_every=0".split()
    return functools.partial(make_smoke_config, tmp_path, *quick)


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the test, which works in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_layout(monkeypatch: pytest.MonkeyPatch):
    """Leaves out titles and layouts of figures, where tables are tested."""

    def finish(figure, title, tabulate):
        figure.tabulate = tabulate
        return figure

    monkeypatch.setattr("tfcomp.figures.exhibits.finish_figure", finish)


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears if another person's `evil_part` is imported."""
    mark = tmp_path / "mark"
    code = f"from pathlib import Path\nPath({str(mark)!r}).touch()\n"
    (tmp_path / "evil_part.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    return mark
