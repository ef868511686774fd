"""Scores of trainings, one file each, which make a search resumable.

A file is named by a hash of what decides its content: the flags of the
training and the code. Targets are not among them, so another target or a
finer tolerance asks only for trainings that have not been done.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tfcomp.config.run_config import RunConfig
from tfcomp.storage.code_version import compute_code_version, hash_modules
from tfcomp.storage.files import DamagedFileError, read_json, write_text
from tfcomp.studies.thresholds.cases import Case
from tfcomp.studies.thresholds.search import Found, find_threshold
from tfcomp.studies.thresholds.threshold_settings import is_reached
from tfcomp.sweeps.trials import compute_hash

# What trains a search's networks and reads their scores.
TRIAL = "tfcomp.studies.thresholds.threshold_trial"

Scores = dict[str, float | None]


class MissingError(LookupError):
    """A training that a search needs has not been done."""


class Evaluations:
    """Recorded scores, in a folder that need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, base: RunConfig) -> Evaluations:
        """Those of a command, given a run that has its name."""
        return cls(Path(base.run_dir) / "evaluations")

    def read(self, config: RunConfig) -> Scores:
        """Scores of a training.

        Raises:
            MissingError: If it has not been done, or its file is damaged.
        """
        path = self._locate(config)
        try:
            return dict(read_json(path)["scores"])
        except (FileNotFoundError, DamagedFileError, KeyError) as error:
            raise MissingError(path.name) from error

    def write(self, config: RunConfig, scores: Scores, seconds: float) -> None:
        """Records the scores of a training in one step."""
        content = {
            "flags": config.identity(),
            "scores": scores,
            "seconds": seconds,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_text(self._locate(config), text)

    def _locate(self, config: RunConfig) -> Path:
        version = compute_code_version(config.plugins) + hash_modules([TRIAL])
        return self.folder / f"{compute_hash(config, version)}.json"


def find_in(
    case: Case, criterion: str, score_fn: Callable[[RunConfig], Scores]
) -> tuple[Found, float | None]:
    """What a search for one criterion found, and the score at its count.

    The function gives the scores of a training, recorded or made.
    """
    target = case.settings.targets[criterion]

    def score(count: int) -> float | None:
        return score_fn(case.make_config(count))[criterion]

    found = find_threshold(
        lambda count: is_reached(criterion, score(count), target),
        case.make_limits(),
    )
    return found, score(found.count)
