"""The analysis report: `python -m benchmarks.report [--grid_size=28]`.

Trains the donut network for one step (what it has learned does not change
what its analysis costs) and prints time and peak memory of
`tfcomp analyze` on it, as a whole process. Goals: under 90 s on two
cores at grid 28, below 4 GB at grid 64 (which takes many minutes).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time

TRAIN = (
    "--flagfile=donut.flags",
    "--epochs=1",
    "--steps_per_epoch=1",
    "--eval_every=0",
    "--layerwise_every=0",
)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--grid_size",
        type=int,
        default=28,
    )
    size = parser.parse_args().grid_size
    with tempfile.TemporaryDirectory() as folder:
        run(
            "tfcomp.train",
            *TRAIN,
            f"--grid_size={size}",
            f"--region=square:{size // 4}-{3 * size // 4}",
            f"--log_dir={folder}",
            f"--export_dir={folder}/models",
        )
        trained = peak_memory()
        start = time.perf_counter()
        run("tfcomp.analyze", f"--run={folder}/donut")
        seconds = time.perf_counter() - start
    print(f"report at grid {size}: {seconds:.0f} s")
    # The system counts the largest child so far: of training, and of both.
    print(f"peak memory: {peak_memory():.2f} GB (training {trained:.2f} GB)")


def run(module: str, *flags: str) -> None:
    """Runs a command of tfcomp in a process of its own."""
    command = [
        sys.executable,
        "-m",
        module,
        *flags,
    ]
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def peak_memory() -> float:
    """Largest resident memory of any finished child, in GB."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
