"""What a new user waits for first: `python -m benchmarks.first_minute`.

Prints the processor seconds of the first commands, and their ratio to an import
of TensorFlow and Keras. Ratios compare machines, also busy ones.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
IMPORT = "import tensorflow, keras"
COMMANDS = (
    "train smoke",
    "analyze tensorboard_logs/smoke",
    "solvable smoke",
)


def main() -> None:
    """Measures each command once, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        baseline = measure([sys.executable, "-c", IMPORT], folder)
        print(f"{IMPORT:32}{baseline:6.1f} s")
        for command in COMMANDS:
            arguments = [sys.executable, "-m", "tfcomp", *command.split()]
            seconds = measure(arguments, folder)
            ratio = seconds / baseline
            print(f"tfcomp {command:25}{seconds:6.1f} s {ratio:5.1f}")


def measure(arguments: list[str], folder: str) -> float:
    """Returns the processor seconds of a process and its children.

    Args:
        arguments: The command.
        folder: Its working directory.

    Raises:
        CalledProcessError: If it fails.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        arguments,
        cwd=folder,
        env={"PYTHONPATH": str(TOP), "HOME": folder, "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return user + system


if __name__ == "__main__":
    main()
