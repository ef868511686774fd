"""A run's model in another format: written, asked, compared, then kept."""

import statistics
import timeit
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfcomp.config.errors import RunError
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.storage.files import replace_folder, write_text
from tfcomp.training.card import format_hub_card
from tfcomp.training.formats import FORMATS, Ask, ask_network

# Of the largest value of an output: each runtime has kernels of its own.
TOLERANCE = 1e-4
BATCHES = (1, 7, 64)  # sizes, one after the other; the last goes on
TIMED = (1, 64)
REPETITIONS = 20


@dataclass(frozen=True)
class Exported:
    """What to load of a format, which agrees with its network."""

    path: Path
    size: int  # bytes of all files
    difference: float  # the largest one, relative to the largest value
    milliseconds: dict[int, float]  # median of a call, by size of the batch


def export_format(run: LoadedRun, name: str, folder: Path) -> Exported:
    """Writes one format of a run's model, unless `compare` has a RunError."""
    form, final = FORMATS[name], folder / name
    with replace_folder(folder, name) as partial:
        form.write(run, partial / form.file)
        ask = form.read(partial / form.file)
        difference = compare(ask, run)
        milliseconds = {size: time_call(ask, run, size) for size in TIMED}
    files = [file for file in final.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return Exported(final / form.file, size, difference, milliseconds)


def compare(ask: Ask, run: LoadedRun) -> float:
    """The largest difference of any output from the network's, relative.

    Of every combination of the grid, in batches of several sizes; a RunError if
    it is too large, or outputs are missing.
    """
    known = ask_network(run.model)
    gaps: dict[str, float] = {}
    scales: dict[str, float] = {}
    for factors in split_grid(run.dataset.splits.grid):
        expected, found = known(factors), ask(factors)
        if expected.keys() != found.keys():
            raise RunError(f"the file has outputs {sorted(found)}")
        for stage, truth in expected.items():
            gap = np.abs(found[stage] - truth).max()  # NaN stays NaN
            gaps[stage] = np.maximum(gaps.get(stage, 0.0), gap)
            scales[stage] = max(scales.get(stage, 0.0), np.abs(truth).max())
    relative = {stage: gaps[stage] / (scales[stage] or 1.0) for stage in gaps}
    stage = max(relative, key=lambda name: np.nan_to_num(relative[name], nan=9))
    if not relative[stage] <= TOLERANCE:
        raise RunError(
            f"{stage} differs from the network's by {relative[stage]:.1e} of "
            f"its largest value; at most {TOLERANCE:g} is allowed"
        )
    return float(relative[stage])


def split_grid(grid: np.ndarray) -> Iterator[np.ndarray]:
    """All points of the grid, in batches of the sizes of `BATCHES`."""
    sizes, start = list(BATCHES), 0
    while start < len(grid):
        size = sizes.pop(0) if sizes else BATCHES[-1]
        yield grid[start : start + size]
        start += size


def time_call(ask: Ask, run: LoadedRun, size: int) -> float:
    """Median milliseconds of a call with so many combinations."""
    grid = run.dataset.splits.grid
    factors = np.resize(grid, (size, grid.shape[1]))
    ask(factors)
    seconds = timeit.repeat(lambda: ask(factors), repeat=REPETITIONS, number=1)
    return 1000 * statistics.median(seconds)


def list_rows(run: LoadedRun, found: Mapping[str, Exported]) -> list[str]:
    """A table of what was written, beside the network in Keras."""
    rows = ["format             kB  difference  ms for 1  ms for 64  file"]
    ask = ask_network(run.model)
    network = {size: time_call(ask, run, size) for size in TIMED}
    rows.append(f"{'(network)':12}{'':21}{_format_times(network)}")
    for name, file in found.items():
        size = f"{file.size / 1000:9.0f}{file.difference:12.1e}"
        times = _format_times(file.milliseconds)
        rows.append(f"{name:12}{size}{times}  {file.path}")
    return rows


def _format_times(times: Mapping[int, float]) -> str:
    return f"{times[1]:10.2f}{times[64]:11.2f}"


def write_hub_card(
    run: LoadedRun, formats: Iterable[str], folder: Path
) -> None:
    """Writes README.md, the card for model hubs."""
    calls = [FORMATS[name].call for name in formats]
    write_text(folder / "README.md", format_hub_card(run, calls))
