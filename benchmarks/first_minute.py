"""What a new user waits for first: `python -m benchmarks.first_minute`.

Prints the processor seconds of the first commands, and their ratio to an import
of TensorFlow and Keras. Ratios compare machines, also busy ones.
"""

import tempfile
from pathlib import Path

from benchmarks.compare import run

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
        baseline = run(TOP, f"-c '{IMPORT}'", folder).processor
        print(f"{IMPORT:32}{baseline:6.1f} s")
        for command in COMMANDS:
            seconds = run(TOP, f"-m tfcomp {command}", folder).processor
            ratio = seconds / baseline
            print(f"tfcomp {command:25}{seconds:6.1f} s {ratio:5.1f}")


if __name__ == "__main__":
    main()
