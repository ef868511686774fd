"""Workers of a Dask cluster, their flags, and the tasks that run on them.

Workers are processes of this machine, jobs of SLURM, or workers of a Dask
scheduler that runs already. Clusters that tfcomp starts speak through TLS: a
port without it lets every other user of the machine run code as us. Their files
are in a folder that only this user can enter, since Dask imports modules from
its scratch folder.

A task is bound to a free worker, and never waits on one that is busy. So the
death of a worker counts against the task that ran on it, and against no other.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.process import count_cores, make_private_folder
from tfcomp.config.settings import Settings, non_negative, setting
from tfcomp.storage.files import make_folder, write_text
from tfcomp.sweeps.worker_task import (
    NewProcessNeeded,
    Setup,
    Task,
    TaskStopped,
    run_task,
)

if TYPE_CHECKING:
    from distributed import Client, Future, Security

# A task has failed after this number of its workers has died. Jobs also end by
# their time limit, so that a trial may outlive several.
MAX_DEATHS = 4
MAX_JOB_DEATHS = 11
POLL_SECONDS = 1.0  # between looks for workers that died
SCALE_SECONDS = 30.0  # between looks for jobs that ended
CONNECT_SECONDS = 5
# Variables that Dask sets for its workers.
THREAD_VARIABLES = (
    "MALLOC_TRIM_THRESHOLD_",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
SETTINGS: dict[str, Any] = {
    # Dask limits the threads of its workers and changes how they return
    # memory, which trials would inherit. None removes a variable.
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(THREAD_VARIABLES),
    # Pages with logs and counts, which know no login.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Dask's measurements for dashboards cost more than all the rest when tasks
    # take minutes.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
Item = TypeVar("Item")
_FORMS = {
    "scheduler": (
        r"(\w+://)?(\[[\da-fA-F:]+\]|[^\s/:\[\]]+):\d{1,5}",
        "the address of a scheduler, as tcp://host:8786",
    ),
    "shard": (r"[1-9]\d{0,5}/[1-9]\d{0,5}", "a part of all parts, as 2/3"),
}


@dataclass(frozen=True)
class SchedulerOptions(Settings):
    """The flags of all commands that start workers."""

    shard: str = setting(
        "",
        "Run a part of the trials: 2/3 is the second of three parts, which "
        "may run at the same time on machines with one file system, as "
        "--shard=$SLURM_ARRAY_TASK_ID/3. Each part writes the tables of all "
        "trials that are finished.",
    )
    workers: int = non_negative(
        0,
        "How many trials run at the same time. With 0 there is one for each "
        "GPU of this machine, or a single one without GPUs.",
        maximum=10**4,
    )
    threads: int = non_negative(
        0,
        "How many threads each trial computes with. With 0 the cores of this "
        "machine are divided among its workers (with --scheduler the "
        "environment of the workers decides), and a small network has one.",
        maximum=1024,
    )
    scheduler: str = setting(
        "",
        "Address of a running Dask scheduler, as tcp://host:8786, whose "
        "workers see the same folders as this machine. Without it, workers "
        "are started on this machine.",
    )
    cluster: str = setting(
        "",
        "Run trials in jobs of SLURM. What the flags below leave out is read "
        "from the configuration of dask-jobqueue "
        "(~/.config/dask/jobqueue.yaml).",
        choices=("", "slurm"),
    )
    job_cores: int = setting(
        1,
        "Cores of a job.",
        minimum=1,
        maximum=1024,
    )
    job_memory: str = setting("4GB", "Memory of a job.")
    job_time: str = setting(
        "",
        "Time limit of a job, as 12:00:00. A trial that reaches it continues "
        "in the next job from its last checkpoint. By default as Dask's file "
        "says, or half an hour.",
    )
    job_gpus: int = non_negative(0, "GPUs of a job.", maximum=64)
    job_partition: str = setting(
        "", "Partition of the jobs. By default as Dask's file says."
    )
    job_wait: int = setting(
        3600, "Seconds that the first job may wait for its start.", minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (form, words) in _FORMS.items():
            value = getattr(self, name)
            if value and not re.fullmatch(form, value, re.ASCII):
                raise ConfigError(name, f"must be {words}", value)
        if self.shard:
            number, count = map(int, self.shard.split("/"))
            if number > count:
                rule = "must name a part up to the number of parts, as 2/3"
                raise ConfigError("shard", rule, self.shard)
        if self.scheduler and (self.cluster or self.workers):
            rule = "has workers: --cluster and --workers must be left out"
            raise ConfigError("scheduler", rule, self.scheduler)
        if self.cluster and not self.workers:
            rule = "must be given with --cluster: the trials at a time"
            raise ConfigError("workers", rule, self.workers)

    def select_shard(self, items: Sequence[Item]) -> Sequence[Item]:
        """Selects every n-th item, from the k-th; all without `--shard=k/n`.

        Parts do not depend on what is finished, so they stay disjoint.

        Args:
            items: All trials or searches, in the order of the command.
        """
        if not self.shard:
            return items
        number, count = map(int, self.shard.split("/"))
        return items[number - 1 :: count]


def is_here(flags: Mapping[str, Any]) -> bool:
    """Checks whether trials run on this machine."""
    return not (flags.get("scheduler") or flags.get("cluster"))


def list_gpus() -> list[str]:
    """Lists the GPUs that this process may use, as CUDA names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = map(str.strip, visible.split(","))
        # CUDA ignores entries after the first invalid one.
        return [*itertools.takewhile(lambda n: n not in ("", "-1"), names)]

    # TensorFlow would occupy one by looking.
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        output = subprocess.check_output(
            command,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return []  # a driver that is absent or silent cannot train either
    return output.split()


@contextlib.contextmanager
def open_pool(
    options: SchedulerOptions, folder: Path = Path()
) -> Iterator[Pool]:
    """Opens workers for a block.

    Args:
        options: The flags that say where they are, and their number: workers of
            a running scheduler, jobs of a cluster, or processes here.
        folder: The folder of the sweep, for the output of jobs.

    Raises:
        ConfigError: If flags do not fit this machine, or no scheduler answers.
        RunError: If no worker can be started.
    """
    _silence_dask()
    if options.scheduler:
        with connect(options.scheduler) as client:
            workers = len(list_workers(client))
            yield Pool(client, options, workers, options.threads)
    elif options.cluster:
        threads = options.threads or options.job_cores
        with start_job_cluster(options, folder.absolute()) as client:
            yield Pool(client, options, options.workers, threads)
    else:
        gpus = list_gpus()
        workers = options.workers or len(gpus) or 1
        if gpus and workers > len(gpus):
            rule = f"must be at most {len(gpus)}, one for each GPU "
            rule += "(CUDA_VISIBLE_DEVICES=0,0 lets two share GPU 0)"
            raise ConfigError("workers", rule, workers)
        threads = options.threads or max(1, count_cores() // workers)
        with start_local_cluster(workers) as client:
            yield Pool(
                client,
                options,
                workers,
                threads,
                tuple(gpus),
            )


def connect(address: str) -> Client:
    """Connects to a scheduler that runs already.

    Args:
        address: As `tcp://host:8786`.

    Raises:
        ConfigError: If no scheduler answers there.
    """
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TypeError, ValueError) as error:
        # Dask raises TypeError for a protocol that is not set up here, as
        # tls:// without its certificates.
        rule = "must be the address of a running Dask scheduler"
        raise ConfigError("scheduler", rule, address) from error


@contextlib.contextmanager
def start_local_cluster(num_workers: int) -> Iterator[Client]:
    """Starts worker processes on this machine, with one thread each.

    Args:
        num_workers: The number of trials at a time.

    Raises:
        RunError: If no worker can be started.
    """
    import dask
    from distributed import LocalCluster

    # By default Dask gives up a worker that is away for 15 s, even if it is
    # only slow to start on a busy machine.
    patience = {"distributed.deploy.lost-worker-timeout": "100000 h"}
    with make_private_folder() as private, dask.config.set(patience):
        make_cluster = functools.partial(
            LocalCluster,
            n_workers=num_workers,
            threads_per_worker=1,
            # No limit: Dask would derive it from the number of workers, not
            # from the need of tasks.
            memory_limit=0,
            dashboard_address="127.0.0.1:0",  # any free port
            scheduler_kwargs={"dashboard": False},
            env={"TMPDIR": str(private)},
            security=True,
        )
        with _open_cluster(make_cluster, private) as client:
            yield client


@contextlib.contextmanager
def start_job_cluster(
    options: SchedulerOptions, folder: Path
) -> Iterator[Client]:
    """Starts workers as jobs of SLURM, through dask-jobqueue.

    Args:
        options: The number of jobs, and what each asks for.
        folder: The folder of the sweep, which all nodes see. The output of
            jobs is written to `logs/jobs` in it.

    Raises:
        ConfigError: If dask-jobqueue or the programs of SLURM are missing.
        RunError: If a job is refused, or none has started in time.
    """
    cluster_class = import_slurm()
    with make_private_folder(make_folder(folder)) as private:
        make_cluster = functools.partial(
            cluster_class,
            **describe_job(options, folder),
            security=_write_keys(private),
            scheduler_options={
                "dashboard": False,
                "dashboard_address": "127.0.0.1:0",
            },
        )
        with _open_cluster(make_cluster, private) as client:
            _submit_jobs(client, options, f"{folder}/logs/jobs")
            yield client


def import_slurm() -> Any:
    """Imports the cluster of dask-jobqueue whose workers are jobs of SLURM.

    Raises:
        ConfigError: If dask-jobqueue or the programs of SLURM are missing.
    """
    if importlib.util.find_spec("dask_jobqueue") is None:
        rule = "needs dask-jobqueue: pip install 'tfcomp[cluster]'"
        raise ConfigError("cluster", rule, "slurm")
    if shutil.which("sbatch") is None:
        rule = "needs sbatch, which this machine does not have"
        raise ConfigError("cluster", rule, "slurm")
    # Its import replaces the handler of Ctrl-C by one with status 0.
    handler = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    signal.signal(signal.SIGINT, handler)
    return dask_jobqueue.SLURMCluster


def describe_job(options: SchedulerOptions, folder: Path) -> dict[str, Any]:
    """Describes a job by arguments of dask-jobqueue.

    What they leave out is read from Dask's file
    (`~/.config/dask/jobqueue.yaml`) by dask-jobqueue.

    Args:
        options: What flags say about jobs.
        folder: The folder of the sweep.
    """
    import dask

    user_directives = dask.config.get("jobqueue.slurm.job-extra-directives", [])
    directives = list(user_directives or [])
    if options.job_gpus:
        directives.append(f"--gres=gpu:{options.job_gpus}")
    settings = dask.config.serialize(SETTINGS)
    python = shlex.quote(sys.executable)
    return {
        "cores": options.job_cores,
        "memory": options.job_memory,
        "walltime": options.job_time or None,
        "queue": options.job_partition or None,
        "job_extra_directives": directives,
        "processes": 1,
        "job_name": "tfcomp",
        # `exec` replaces the shell: the signal that ends a job reaches Dask.
        "python": f"exec env DASK_INTERNAL_INHERIT_CONFIG={settings} {python}",
        # One task at a time, whose memory SLURM limits.
        "worker_extra_args": [
            "--nthreads=1",
            "--memory-limit=0",
            "--no-dashboard",
        ],
        "log_directory": f"{folder}/logs/jobs",
    }


def _write_keys(folder: Path) -> Security:
    """Writes the keys of one cluster into a folder, where its jobs read them.

    Returns:
        The keys, with paths of files in place of their contents.
    """
    from distributed import Security

    # dask-jobqueue would write them itself, and remove them too late.
    keys = Security.temporary()
    for name in ("tls_ca_file", "tls_worker_cert", "tls_worker_key"):
        path = folder / f"{name}.pem"
        write_text(path, getattr(keys, name))
        setattr(keys, name, str(path))
    return keys


def _submit_jobs(client: Client, options: SchedulerOptions, logs: str) -> None:
    """Submits all jobs, and waits for the first worker.

    Raises:
        RunError: If a job is refused, or none has started in time.
    """

    async def submit() -> None:
        client.cluster.scale(jobs=options.workers)
        await client.cluster  # else the error of a job would be lost

    try:
        client.cluster.sync(submit)
    except (AssertionError, OSError, RuntimeError, ValueError) as error:
        raise _make_error("no job can be submitted", error) from error

    print(f"waiting for the first job; its output: {logs}", flush=True)
    try:
        client.wait_for_workers(1, timeout=options.job_wait)
    except TimeoutError as error:
        text = f"no job has started in {options.job_wait} s (--job_wait)"
        raise RunError(f"{text}: read their output in {logs}") from error


@contextlib.contextmanager
def _open_cluster(
    make_cluster: Callable[..., Any], private: Path
) -> Iterator[Client]:
    """Opens a cluster for a block.

    Args:
        make_cluster: Starts the cluster.
        private: The folder of the cluster's files, which only this user can
            enter.

    Yields:
        The client of the cluster.

    Raises:
        RunError: If no worker can be started.
    """
    import dask
    from distributed import Client

    settings = SETTINGS | {"temporary-directory": str(private)}
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        with _hold_back_interrupts():
            try:
                cluster = make_cluster(
                    local_directory=str(private),
                    silence_logs=logging.CRITICAL,
                )
                stack.callback(_close, cluster)
                client = stack.enter_context(Client(cluster))
            except (OSError, RuntimeError, TypeError, ValueError) as error:
                raise _make_error("no worker can be started", error) from error
        yield client


def _make_error(problem: str, error: Exception) -> RunError:
    """Makes an error of one line, whatever line ends its reason has."""
    return RunError(" ".join([f"{problem}:", *str(error).split()]))


def _silence_dask() -> None:
    """Hides Dask's logs, mostly tracebacks of lost workers, from users."""
    import distributed  # noqa: F401  sets the levels as it is imported

    for name in (
        "distributed",
        "distributed.client",
        "distributed.gc",
        "tornado.application",
    ):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextlib.contextmanager
def _hold_back_interrupts() -> Iterator[None]:
    """Makes workers that start in the block ignore Ctrl-C.

    A process inherits the signals that are blocked when it starts.
    """
    # This helper of multiprocessing unblocks the signal when it starts. So it
    # is started before.
    resource_tracker.ensure_running()
    outer_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, outer_mask)


def _close(cluster: Any) -> None:
    """Stops the workers; a worker that does not end dies with this process."""
    from distributed import Status

    try:
        cluster.close(timeout=60)
    except (AssertionError, TimeoutError):
        # All is closed, but Dask still expects a job that was refused.
        cluster.status = Status.closed


def list_workers(client: Client) -> list[str]:
    """Lists the addresses of all workers.

    Raises:
        RunError: If the scheduler does not answer any more.
    """
    try:
        return list(client.nthreads())
    except (OSError, RuntimeError, ValueError) as error:
        raise RunError("the scheduler is gone: repeat the command") from error


class Outcome(NamedTuple):
    """The end of a task."""

    name: str
    reason: str  # of its failure, in one line; empty if it did not fail
    seconds: float = 0.0


class _Started(NamedTuple):
    """A task that was started on a worker."""

    task: Task
    future: Future
    start: float  # in seconds, by `time.monotonic`


@dataclass
class Pool:
    """Workers for batches of tasks."""

    client: Client
    options: SchedulerOptions
    workers: int  # tasks at a time, when the pool was opened
    threads: int  # of a task; 0 if the environment of its worker decides
    gpus: tuple[str, ...] = ()

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Runs tasks, the first ones first; yields outcomes as they end.

        Args:
            tasks: With unique names. If the iterator is closed, they stop.

        Raises:
            RunError: If the scheduler is gone.
        """
        waiting = deque(tasks)
        running: dict[str, _Started] = {}  # by the address of the worker
        deaths = Counter[str]()
        self._last_scaled = time.monotonic()
        try:
            while waiting or running:
                self._start_tasks(waiting, running)
                outcomes = []
                for address in self._wait(running):
                    started = running.pop(address)
                    task = started.task
                    reason = self._find_reason(started, address, deaths)
                    if reason is None:  # it runs again, before all others
                        waiting.appendleft(task)
                        continue
                    seconds = time.monotonic() - started.start
                    outcomes.append(Outcome(task.name, reason, seconds))
                # The caller writes tables at each outcome: all workers are
                # busy meanwhile.
                self._start_tasks(waiting, running)
                yield from outcomes
        finally:
            futures = [started.future for started in running.values()]
            self.client.cancel(futures, force=True)

    def _start_tasks(
        self,
        waiting: deque[Task],
        running: dict[str, _Started],
    ) -> None:
        """Starts a task on each free worker; ends jobs without a task.

        Args:
            waiting: Tasks to start; started ones are removed.
            running: Started tasks by the address of their worker; newly started
                ones are added.
        """
        addresses = list_workers(self.client)
        free = [address for address in addresses if address not in running]
        while waiting and free:
            address = free.pop(0)
            running[address] = self._submit(waiting.popleft(), address)
        if not self.options.cluster:
            return

        if free:  # an idle job should not hold its cores until the end
            self.client.retire_workers(free)
        # Jobs that ended by their time limit are submitted again.
        now = time.monotonic()
        if waiting and now - self._last_scaled > SCALE_SECONDS:
            self._last_scaled = now
            self.client.cluster.scale(jobs=self.options.workers)

    def _wait(self, running: dict[str, _Started]) -> list[str]:
        """Waits for a moment; lists workers that have ended a task, or died."""
        from distributed import wait

        futures = [started.future for started in running.values()]
        if futures:
            with contextlib.suppress(TimeoutError, CancelledError):
                wait(futures, POLL_SECONDS, "FIRST_COMPLETED")
        else:
            time.sleep(POLL_SECONDS)
        alive = list_workers(self.client)
        ended = []
        for address, started in running.items():
            if started.future.done() or address not in alive:
                ended.append(address)
        return ended

    def _submit(self, task: Task, address: str) -> _Started:
        """Starts a task on the worker of an address."""
        threads = self.threads
        # A task may profit from fewer threads, unless the user sets them.
        if task.max_threads and not self.options.threads:
            threads = min(threads or task.max_threads, task.max_threads)
        setup = Setup(
            folder=os.getcwd(),
            code=compute_code_version(task.plugins),
            plugins=task.plugins,
            replicas=task.replicas,
            threads=threads,
            gpus=self.gpus,
        )
        future = self.client.submit(
            run_task,
            task,
            setup,
            pure=False,  # an equal call is run again
            workers=[address],
        )
        return _Started(task, future, time.monotonic())

    def _find_reason(
        self,
        started: _Started,
        address: str,
        deaths: Counter[str],
    ) -> str | None:
        """Finds out how a task ended.

        Args:
            started: The task, which has ended or lost its worker.
            address: The worker.
            deaths: Numbers of workers that died, by the name of their task;
                this one is added.

        Returns:
            The reason of its failure; an empty text if it succeeded; None if
            it is to run again.
        """
        from distributed import KilledWorker

        name = started.task.name
        future = started.future
        status = future.status
        error = future.exception() if status == "error" else None
        future.cancel(force=True)
        if status == "finished":
            return ""
        if isinstance(error, TaskStopped):
            return None
        if isinstance(error, NewProcessNeeded):
            self.client.restart_workers([address], raise_for_error=False)
            return None
        if error is not None and not isinstance(error, KilledWorker):
            return first_line(error)

        # The worker is gone, or the scheduler has lost the task with it.
        deaths[name] += 1
        max_deaths = MAX_JOB_DEATHS if self.options.cluster else MAX_DEATHS
        if deaths[name] < max_deaths:
            return None
        return f"its worker died {max_deaths} times (see its log)"
