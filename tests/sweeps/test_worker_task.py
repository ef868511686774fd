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
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """One worker, which finds a plugin where this process does."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "plugin_of_a_task.py").write_text(PLUGIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with open_pool(SchedulerOptions(workers=1)) as pool:
            yield pool


def run(pool: Pool, *wanted: Task) -> list[str]:
    """The reasons of the tasks, in their order."""
    reasons = {o.name: o.reason for o in pool.run(wanted)}
    return [reasons[task.name] for task in wanted]


def test_failures_and_other_setups_cost_one_process(
    pool: Pool,
    tmp_path: Path,
):
    """Plugins stay with a process."""
    list_models = tasks.list_models
    plugin = {"plugins": "plugin_of_a_task"}

    reasons = run(
        pool,
        make_task("a", tmp_path, list_models, **plugin),
        make_task("b", tmp_path, tasks.refuse, **plugin),
        make_task("c", tmp_path, list_models),
        make_task("d", tmp_path, tasks.crash),
        make_task("e", tmp_path, tasks.show_process),
    )

    refused = "--depth is bad"
    crashed = "ZeroDivisionError: division by zero"
    assert reasons == ["", refused, "", crashed, ""]
    first, second, third, fourth, fifth = read_pids(tmp_path)
    assert first == second
    assert third == fourth
    assert len({os.getpid(), first, third, fifth}) == 4
    texts = {path.stem: path.read_text() for path in tmp_path.glob("*.log")}
    assert "of_the_plugin" in texts["a"]
    assert f"error: {refused}" in texts["b"]
    assert "of_the_plugin" not in texts["c"]
    assert "from a library" in texts["d"]


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
