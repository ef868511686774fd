"""A sweep as one table: a row for each run, or for each stage of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import RunError
from tfcomp.tables.flatten import END, NO_FLAGS
from tfcomp.tables.read import join_path, read_runs

if TYPE_CHECKING:
    from pandas import DataFrame

TRIALS = "trials"  # the folder of the runs of a sweep


@dataclass(frozen=True, eq=False)
class Sweep:
    """The finished runs of a sweep, as the tables of `tfcomp.read_runs`."""

    path: Path
    runs: DataFrame
    numbers: DataFrame

    @property
    def varied(self) -> list[str]:
        """Flags that differ between runs, without the seed."""
        flags = [str(name) for name in self.runs if name not in NO_FLAGS]
        return [f for f in flags if self.runs[f].nunique(dropna=False) > 1]

    def to_frame(self, kind: str = "runs") -> DataFrame:
        """Returns what varies, the seed, and numbers of the trained networks.

        Columns of numbers are named as in `metrics.json`, as `ood/mse`; the
        column `run` has the folder for `tfcomp.load_run`.

        Args:
            kind: `runs` for a row for each run, with scores of images; `stages`
                for a row for each stage of a run, with metrics of stages.

        Raises:
            ValueError: For another kind.
        """
        if kind not in ("runs", "stages"):
            raise ValueError(f"kind must be runs or stages, got {kind!r}")
        numbers = self.numbers[self.numbers["when"] == END]
        is_stage = numbers["stage"] != ""
        numbers = numbers[is_stage if kind == "stages" else ~is_stage]
        numbers = numbers.assign(path=join_path(numbers))
        index = ["run", "stage"] if kind == "stages" else ["run"]
        # In the order of the data flow.
        wide = numbers.set_index([*index, "path"])["value"].unstack(sort=False)
        wide = wide.reset_index().rename_axis(columns=None)
        settings = self.runs[["run", *self.varied, "seed", "folder"]]
        table = settings.merge(wide, on="run", how="left")
        return table.drop(columns="run").rename(columns={"folder": "run"})


def load_sweep(path: str | Path) -> Sweep:
    """Loads the finished runs of a sweep, without TensorFlow.

    Args:
        path: The folder of the sweep, as `tensorboard_logs/my_sweep`.

    Raises:
        RunError: The folder is no sweep.
        ConfigError: None of its runs is finished.
    """
    folder = Path(path)
    if not (folder / TRIALS).is_dir():
        rule = f"has no folder {TRIALS}; for a run, use tfcomp.load_run"
        raise RunError(f"path must be a sweep folder, {folder} {rule}")
    return Sweep(folder, *read_runs(folder / TRIALS))
