"""A real SLURM of two nodes on this machine, for as long as a block lasts.

    with start_slurm(Path("lab")) as slurm:
        print(slurm.ask("sinfo"))

munge, slurmctld and two slurmd are started with files, sockets and ports of
their own, so that nothing of the system is touched; `SLURM_CONF` leads the
programs of SLURM to them. All of it is stopped at the end, with its jobs.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
NODES = ("n1", "n2")
PATIENCE = 120.0  # seconds
CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=15
MinJobAge=3600
NodeName={nodes[0]} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} \
CPUs=2 RealMemory=16000
NodeName={nodes[1]} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} \
CPUs=2 RealMemory=16000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class Slurm:
    """A SLURM that runs.

    Attributes:
        folder: Of its configuration, state and logs.
        processes: Its daemons by name, `slurmd.n1` for that of a node.
    """

    folder: Path
    processes: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """That of programs which are to find it."""
        return {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            # All nodes are this machine.
            "DASK_JOBQUEUE__SLURM__INTERFACE": "lo",
        }

    def ask(self, *command: str) -> str:
        """What a program of SLURM prints; empty while it does not answer."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True
        )
        return done.stdout if done.returncode == 0 else ""

    def list_jobs(self) -> list[tuple[str, str, str]] | None:
        """Number, state and node of every job in the queue.

        None as long as slurmctld does not answer.
        """
        found = self.ask("squeue", "--sort=i", "--format=%A %T %N.")
        words = (line.rstrip(".").split(" ") for line in found.splitlines())
        jobs = [(number, state, node) for number, state, node in words]
        return jobs[1:] if jobs else None  # the first line is a heading

    def start(self, name: str) -> None:
        """Starts a daemon: munged, slurmctld, or the slurmd of a node."""
        program, _, node = name.partition(".")
        with open(self.folder / f"{name}.out", "ab") as output:
            self.processes[name] = subprocess.Popen(
                _make_command(program, node, self.folder),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self, name: str) -> None:
        """Kills a daemon as a failure of its machine would."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self) -> None:
        """Cancels all jobs, ends all daemons and what they have started."""
        self.ask("scancel", f"--user={getpass.getuser()}")
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: self.list_jobs() == [], 30)
        for process in reversed(self.processes.values()):
            children = _list_children(process)
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()


@contextlib.contextmanager
def start_slurm(folder: Path) -> Iterator[Slurm]:
    """Starts SLURM in a new folder, which is removed at the end.

    Raises:
        TimeoutError: If its nodes do not come up.
    """
    folder = folder.absolute()
    folder.mkdir(mode=0o700)
    slurm = Slurm(folder)
    try:
        _write_files(folder)
        for name in ("munged", "slurmctld", *(f"slurmd.{n}" for n in NODES)):
            slurm.start(name)
        wait_for(lambda: slurm.ask("sinfo", "-h", "-o", "%T %D") == "idle 2\n")
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)


def find_missing() -> str:
    """Why SLURM cannot be started here, empty if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"SLURM is not installed: no {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "SLURM must be started by root"


def wait_for(
    condition: Callable[[], object], seconds: float = PATIENCE
) -> None:
    """Returns once a condition holds.

    Raises:
        TimeoutError: If it does not.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.5)


def find_processes(environment: Mapping[str, str]) -> list[psutil.Process]:
    """Processes that have these variables, those of our jobs among them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if environment.items() <= process.environ().items():
                found.append(process)
    return found


def _write_files(folder: Path) -> None:
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    text = CONFIG.format(
        folder=folder,
        host=socket.gethostname(),
        user=getpass.getuser(),
        ports=_find_ports(3),
        nodes=NODES,
    )
    (folder / "slurm.conf").write_text(text)


def _make_command(program: str, node: str, folder: Path) -> list[str]:
    if program == "munged":
        files = {
            "socket": "munge.socket",
            "key-file": "munge.key",
            "pid-file": "munge.pid",
            "log-file": "munge.log",
            "seed-file": "munge.seed",
        }
        options = [f"--{key}={folder / name}" for key, name in files.items()]
        return ["munged", "--foreground", "--force", *options]
    return [program, "-D", "-f", str(folder / "slurm.conf")] + (
        ["-N", node] if node else []
    )


def _find_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _list_children(process: subprocess.Popen) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
