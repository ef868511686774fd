"""Nobody else's code runs as us through the folders and ports of a cluster.

The attack: another user has made `dask-scratch-space` among the temporary files
before us, with all rights for all, and puts modules into every folder that
appears below. Dask puts these folders on `sys.path`.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfcomp.sweeps.pool import start_local_cluster

NOBODY = 65534
# Runs as the other user: swaps what it can, and plants a module everywhere.
ATTACK = """
import os, sys, time
place, parent = sys.argv[1], int(sys.argv[2])
os.umask(0)
os.mkdir(os.path.join(place, "dask-scratch-space"))
print("ready", flush=True)
while os.getppid() == parent:
    for folder, below, _ in os.walk(place):
        for name in [folder, *(os.path.join(folder, b) for b in below)]:
            try:
                if "er-" in name and not name.endswith("-old"):
                    os.rename(name, name + "-old")
                    os.mkdir(name)
                open(os.path.join(name, "decoy_of_a_stranger.py"), "w").close()
            except OSError:
                pass
    time.sleep(0.002)
"""


@pytest.fixture
def attacked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that an attacker has prepared."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))  # others cannot enter pytest's
    place.chmod(0o1777)  # as /tmp: all may write, none removes another's
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    command = ["-c", ATTACK, str(place), str(os.getpid())]
    with subprocess.Popen(
        ["/usr/bin/env", "python3", *command],
        user=NOBODY if os.geteuid() == 0 else None,
        stdout=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin"},
        cwd="/",
    ) as stranger:
        assert stranger.stdout
        assert stranger.stdout.readline()
        yield place
        stranger.kill()
    subprocess.run(["rm", "-rf", str(place)], check=True)


def import_decoy() -> str:
    """The place where the attacker's module was found, or nothing."""
    importlib.invalidate_caches()
    try:
        module = importlib.import_module("decoy_of_a_stranger")
    except ModuleNotFoundError:
        return ""
    return str(module.__file__)


def list_dask_places() -> list[tuple[str, int]]:
    """Folders that Dask added to `sys.path`, and the private one's rights."""
    return [
        (name, os.stat(os.path.dirname(os.path.dirname(name))).st_mode & 0o777)
        for name in sys.path
        if "dask-scratch-space/" in name
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_stranger_is_not_imported(attacked: Path):
    with start_local_cluster(1) as client:
        places = client.submit(list_dask_places).result(60)
        assert places
        assert {mode for _, mode in places} == {0o700}
        assert client.submit(import_decoy, pure=False).result(60) == ""
        assert import_decoy() == ""
    assert list((attacked / "dask-scratch-space").glob("decoy*"))  # it tried
    assert not list(attacked.glob("tfcomp-*"))
