"""The folder of a threshold search.

threshold.flags    every resolved flag; `--flagfile` of it goes on
evaluations/       the scores of every training (see `evaluations`)
logs/<search>.log  output of the searches
thresholds.csv     one row a search (see `tables`)
slopes.csv         one row a law
figures/           the picture, and the means that it shows
"""

from __future__ import annotations

from pathlib import Path

from tfcomp.sweeps.sweep_folder import SweepFolder


class ThresholdFolder(SweepFolder):
    """Paths of a threshold search, and its lock; see `SweepFolder`."""

    @property
    def flags_file(self) -> Path:
        """Path of the flags that repeat the command."""
        return self.path / "threshold.flags"

    @property
    def evaluations(self) -> Path:
        """Folder of the scores."""
        return self.path / "evaluations"

    @property
    def figures(self) -> Path:
        """Folder of the pictures."""
        return self.path / "figures"
