"""Commands in processes of their own, which import nothing heavy."""

import subprocess
import sys
from collections.abc import Callable

import pytest

SCRIPT = """
import importlib
import sys
from tfcomp.config.errors import ConfigError
command = importlib.import_module(f"tfcomp.{sys.argv[1]}")
try:
    status = command.main(sys.argv[1:])
except ConfigError:
    status = 2
heavy = {"tensorflow", "keras", "matplotlib", "distributed", "sklearn"}
sys.exit(str(heavy & set(sys.modules) or "") or status)
"""


@pytest.fixture
def run_lightly() -> Callable[..., str]:
    """Runs a command in the folder of the test; returns what it prints."""

    def run(command: str, *flags: str, status: int = 0) -> str:
        result = subprocess.run(
            [sys.executable, "-c", SCRIPT, command, *flags],
            capture_output=True,
            text=True,
        )
        assert (result.returncode, result.stderr) == (status, "")
        return result.stdout

    return run
