"""Writes a run's model in another format and compares it with the network."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfcomp.config.errors import RunError
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.storage.files import replace_folder, write_text
from tfcomp.training.card import format_hub_card
from tfcomp.training.formats import FORMATS, Predict, predict_keras

# Relative to the largest value of an output: runtimes have their own kernels.
TOLERANCE = 1e-4
BATCHES = (1, 7, 64)  # sizes of successive batches; the last one repeats


@dataclass(frozen=True)
class Exported:
    """A file that agrees with its network."""

    path: Path
    size: int  # bytes of all files
    difference: float  # the largest one, relative to the largest value


def export_format(run: LoadedRun, name: str, folder: Path) -> Exported:
    """Writes a model to `folder / name`; a RunError of `compare` undoes it."""
    form, final = FORMATS[name], folder / name
    with replace_folder(folder, name) as partial:
        form.write(run, partial / form.file)
        difference = compare(form.read(partial / form.file), run)
    files = [file for file in final.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return Exported(final / form.file, size, difference)


def compare(predict: Predict, run: LoadedRun) -> float:
    """Returns the largest relative difference of any output from the network.

    Every combination of the grid is compared, in batches of several sizes.

    Raises:
        RunError: The difference exceeds `TOLERANCE`, or outputs are missing.
    """
    network = predict_keras(run.model)
    gaps: dict[str, float] = {}
    scales: dict[str, float] = {}
    for factors in split_grid(run.dataset.splits.grid):
        expected, outputs = network(factors), predict(factors)
        if expected.keys() != outputs.keys():
            raise RunError(f"the file has outputs {sorted(outputs)}")
        for stage, truth in expected.items():
            gap = np.abs(outputs[stage] - truth).max()
            gaps[stage] = np.maximum(gaps.get(stage, 0.0), gap)  # keeps NaN
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
    """Yields all points of the grid, in batches of the sizes of `BATCHES`."""
    sizes, start = list(BATCHES), 0
    while start < len(grid):
        size = sizes.pop(0) if sizes else BATCHES[-1]
        yield grid[start : start + size]
        start += size


def list_rows(exports: Mapping[str, Exported]) -> list[str]:
    """Returns a table of the files that were written."""
    rows = ["format             kB  difference  file"]
    for name, export in exports.items():
        size = f"{export.size / 1000:9.0f}{export.difference:12.1e}"
        rows.append(f"{name:12}{size}  {export.path}")
    return rows


def write_hub_card(
    run: LoadedRun, formats: Iterable[str], folder: Path
) -> None:
    """Writes README.md, the card for model hubs."""
    calls = [FORMATS[name].call for name in formats]
    write_text(folder / "README.md", format_hub_card(run, calls))
