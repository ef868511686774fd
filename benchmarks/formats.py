"""Every format of `tfcomp export` beside Keras, as a table in Markdown.

    OMP_NUM_THREADS=1 python -m benchmarks.formats RUN...

writes the table into docs/formats.md. Each format is opened by its own runtime.
Times are those of the processor, of all threads together, since other programs
on the machine make no difference to them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.training.formats import FORMATS, Ask, check_formats

if TYPE_CHECKING:
    from tfcomp.evaluation.loading import LoadedRun

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
BEGIN = "<!-- written by python -m benchmarks.formats -->\n"
END = "\n**Difference**"
HEAD = (
    "| run | format | kB | difference | ms for 1 | ms for 64 |\n"
    "|---|---|---|---|---|---|\n"
)
REPETITIONS = 50


def list_rows(path: str) -> Iterator[str]:
    """Rows of a run: the network in Keras first, then each format."""
    from tfcomp.evaluation.loading import load_run
    from tfcomp.training import format_export
    from tfcomp.training.formats import ask_network

    def time_all(ask: Ask) -> str:
        found = (measure(ask, run, size) for size in format_export.TIMED)
        return " | ".join(f"{milliseconds:.2f}" for milliseconds in found)

    run = load_run(path)
    yield f"| {run.name} | (Keras) | | | {time_all(ask_network(run.model))} |\n"
    for name, form in FORMATS.items():
        try:
            check_formats([name])
        except ConfigError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = format_export.export_format(run, name, Path(folder))
            times = time_all(form.read(found.path))
        yield (
            f"| {run.name} | `{name}` | {found.size / 1000:.0f} | "
            f"{found.difference:.1e} | {times} |\n"
        )


def measure(ask: Ask, run: LoadedRun, size: int) -> float:
    """Milliseconds of the processor for a call with so many combinations."""
    grid = run.dataset.splits.grid
    factors = np.resize(grid, (size, grid.shape[1]))
    ask(factors)
    start = time.process_time()
    for _ in range(REPETITIONS):
        ask(factors)
    return 1000 * (time.process_time() - start) / REPETITIONS


def main(paths: list[str]) -> None:
    """Measures the runs and writes the table."""
    with start_tensorflow():
        rows = [row for path in paths for row in list_rows(path)]
    start, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, rest = rest.partition(END)
    PAGE.write_text(
        f"{start}{BEGIN}\n{HEAD}{''.join(rows)}{end}{rest}", "utf-8"
    )
    print("".join(rows), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
