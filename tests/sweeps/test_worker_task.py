"""Tasks in the process of a worker: setups, failures, output, plugins."""

import os
import random
from collections.abc import Iterator
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


def test_failures_and_other_setups_cost_one_process(
    pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Plugins and threads stay with a process."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plugin_of_a_task.py").write_text(PLUGIN)
    show = tasks.show_process
    list_models = tasks.list_models

    reasons = run(
        pool,
        make_task("a", tmp_path, show),
        make_task("b", tmp_path, tasks.refuse),
        make_task("c", tmp_path, show),
        make_task("d", tmp_path, list_models, plugins="plugin_of_a_task"),
        make_task("e", tmp_path, list_models, max_threads=1),
        make_task("f", tmp_path, tasks.crash, max_threads=1),
    )

    refused = "--depth is bad"
    crashed = "ZeroDivisionError: division by zero"
    assert reasons == ["", refused, "", "", "", crashed]
    first, second, *others, fifth, sixth = read_pids(tmp_path)
    assert first == second
    assert fifth == sixth
    assert len({os.getpid(), first, *others, fifth}) == 5
    texts = {path.stem: path.read_text() for path in tmp_path.glob("*.log")}
    assert f"error: {refused}" in texts["b"]
    assert "of_the_plugin" in texts["d"]
    assert "of_the_plugin" not in texts["e"]
    assert "from a library" in texts["f"]


def test_environment_of_a_task(tmp_path: Path, monkeypatch):
    """One trial runs on each GPU, or several that share its memory."""
    monkeypatch.setattr(pool_module, "list_gpus", lambda: [*"464"])
    names = (
        "CUDA_VISIBLE_DEVICES",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "OMP_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
    )
    with open_pool(SchedulerOptions(workers=2, threads=3)) as pool:
        show = tasks.show_environment
        wanted = [make_task(name, tmp_path, show, *names) for name in "ab"]
        assert run(pool, *wanted) == [""] * 2
    outputs = [(tmp_path / f"{n}.log").read_text().split() for n in "ab"]
    rest = ["3", "3", os.getcwd()]
    alone = ["6", "-", *rest]
    shared = ["4", "true", *rest]
    assert sorted(outputs) == [shared, alone]


def test_threads_of_dask_do_not_draw(pool: Pool, tmp_path: Path):
    """Keras seeds weights from `random`, which Dask draws from as well."""
    assert run(pool, make_task("a", tmp_path, tasks.draw)) == [""]
    text = (tmp_path / "a.log").read_text()
    assert int(text) == random.Random(1).randint(1, 10**9)


def test_other_code_is_refused(
    pool: Pool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Scores of other code would stand under the name of this one."""
    monkeypatch.setattr(
        pool_module, "compute_code_version", lambda plugins: "x"
    )
    (reason,) = run(pool, make_task("a", tmp_path, tasks.show_process))
    assert "the code of the worker" in reason
