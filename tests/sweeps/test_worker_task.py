"""Tasks in the process of a worker: setups, failures, output, plugins."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sweeps import tasks
from tests.sweeps.tasks import make_task, read_pids
from tfcomp.sweeps import pool as pool_module
from tfcomp.sweeps.pool import Pool, SchedulerOptions, open_pool
from tfcomp.sweeps.worker_task import Task

PLUGIN = """
from tfcomp.models import MODELS
@MODELS.register("of_the_plugin")
def build(config, dataset):
    raise NotImplementedError
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with open_pool(SchedulerOptions(workers=1, threads=3)) as pool:
        yield pool


def run(pool: Pool, *wanted: Task) -> list[str]:
    """The reasons of the tasks, in their order."""
    reasons = {o.name: o.reason for o in pool.run(wanted)}
    return [reasons[task.name] for task in wanted]


@pytest.mark.parametrize(
    ("function", "reason", "output"),
    [
        (tasks.refuse, "--depth is bad", "error: --depth is bad"),
        (tasks.crash, "ZeroDivisionError: division by zero", "from a library"),
    ],
)
def test_a_failure_has_a_reason_and_costs_one_process(
    pool: Pool,
    function: Callable,
    reason: str,
    output: str,
    tmp_path: Path,
) -> None:
    first = make_task("a", tmp_path, tasks.show_process)
    failing = make_task("b", tmp_path, function)
    after = make_task("c", tmp_path, tasks.show_process)
    assert run(pool, first, failing, after) == ["", reason, ""]
    one, two, three = read_pids(tmp_path)
    assert one == two != three
    assert os.getpid() not in (one, three)
    assert output in (tmp_path / "b.log").read_text().splitlines()


def test_environment_of_a_task(tmp_path: Path, monkeypatch) -> None:
    """One trial runs on each GPU, or several that share its memory."""
    monkeypatch.setattr(pool_module, "list_gpus", lambda: [*"464"])
    names = (
        "CUDA_VISIBLE_DEVICES",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "OMP_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
    )
    with open_pool(SchedulerOptions(threads=3)) as pool:
        assert pool.workers == 3
        show = tasks.show_environment
        wanted = [make_task(name, tmp_path, show, *names) for name in "abc"]
        assert run(pool, *wanted) == [""] * 3
    outputs = [(tmp_path / f"{n}.log").read_text().split() for n in "abc"]
    rest = ["3", "3", os.getcwd()]
    alone = ["6", "-", *rest]
    shared = ["4", "true", *rest]
    assert sorted(outputs) == [shared, shared, alone]


def test_another_setup_is_another_process(pool: Pool, tmp_path: Path) -> None:
    """Threads and replicas stay with a process; a small network has one."""
    show = tasks.show_process
    wanted = [
        make_task("a", tmp_path, show),
        make_task("b", tmp_path, show, replicas=2),
        make_task("c", tmp_path, show, max_threads=1),
        make_task("d", tmp_path, show, max_threads=1),
    ]
    assert run(pool, *wanted) == [""] * 4
    *others, third, fourth = read_pids(tmp_path)
    assert third == fourth
    assert len({*others, third}) == 3


def test_plugins_do_not_leak(
    pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plugin_of_a_task.py").write_text(PLUGIN)
    wanted = [
        make_task("a", tmp_path, tasks.list_models),
        make_task("b", tmp_path, tasks.list_models, plugins="plugin_of_a_task"),
        make_task("c", tmp_path, tasks.list_models),
    ]
    assert run(pool, *wanted) == [""] * 3
    models = [(tmp_path / f"{n}.log").read_text().split() for n in "abc"]
    has_model = ["of_the_plugin" in names for names in models]
    assert has_model == [False, True, False]


def test_other_code_is_refused(
    pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores of other code would stand under the name of this one."""
    monkeypatch.setattr(
        pool_module, "compute_code_version", lambda plugins: "x"
    )
    (reason,) = run(pool, make_task("a", tmp_path, tasks.show_process))
    assert "the code of the worker" in reason


def test_threads_of_dask_do_not_draw(pool: Pool, tmp_path: Path) -> None:
    """Keras seeds weights from `random`, which Dask draws from as well."""
    assert run(pool, make_task("a", tmp_path, tasks.draw)) == [""]
    text = (tmp_path / "a.log").read_text()
    assert int(text) == random.Random(1).randint(1, 10**9)
