"""Evidence on claims: groups of finished runs, and threshold studies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import split_names
from tfcomp.studies.claims.searches import (
    ThresholdStudy,
    find_studies,
    read_study,
)
from tfcomp.tables import read_results
from tfcomp.tables.groups import Group

# Seeds of rounds: trials, on which rules were written; the first evidence that
# they judged; fresh ones of version 3; unseen ones of version 4.
TRIALS, FIRST, FRESH, UNSEEN = range(4)
FIRST_SEED, NEXT_SEED, UNSEEN_SEED = 100, 200, 300
LIMITS = (0, FIRST_SEED, NEXT_SEED, UNSEEN_SEED, 2**32)


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that claims are judged by; notes say what was left out."""

    groups: tuple[Group, ...] = ()
    studies: tuple[ThresholdStudy, ...] = ()
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def rounds(self) -> list[Evidence]:
        """The runs and the searches of each round of seeds."""
        pairs = zip(LIMITS, LIMITS[1:], strict=False)
        return [self.keep(range(low, high)) for low, high in pairs]

    def keep(self, seeds: range) -> Evidence:
        """Returns the runs and the searches of some seeds."""
        studies = [
            study
            for study in self.studies
            if len(study.thresholds)
            and study.thresholds["seed"].map(seeds.__contains__).all()
        ]
        groups = filter(len, (group.keep(seeds) for group in self.groups))
        return Evidence(tuple(groups), tuple(studies))

    def limit(self, count: int) -> Evidence:
        """Returns the first seeds of each group, as many as a plan names."""
        groups = tuple(g.keep(g.seeds[:count]) for g in self.groups)
        return Evidence(groups, self.studies)

    def take_controls(self) -> Evidence:
        """Returns networks trained on everything, as if on their own region."""
        return Evidence(
            tuple(
                replace(group, flags=group.flags | {"train_all": False})
                for group in self.groups
                if group.flags.get("train_all")
            )
        )

    @property
    def num_runs(self) -> int:
        return sum(map(len, self.groups))


def read_evidence(patterns: Sequence[str]) -> Evidence:
    """Reads all finished runs and threshold studies that patterns match.

    They may lie at any depth, and in packed files. No two runs are the same
    computation. Raises ConfigError if a pattern matches nothing.
    """
    results = read_results(patterns, history=False)
    notes, studies = list(results.notes), []
    for folder in find_studies(patterns):
        try:
            studies.append(read_study(folder))
        except (OSError, ValueError, RunError) as error:
            notes.append(f"{Path(folder).name} cannot be read: {error}")
    groups = tuple(results.groups)
    return Evidence(groups, tuple(studies), tuple(notes))


def read_some_evidence(runs: str) -> Evidence:
    """Reads what `--runs` matches; raises ConfigError if it is nothing."""
    evidence = read_evidence(split_names(runs))
    if not evidence.groups and not evidence.studies:
        rule = "must match finished runs or threshold searches"
        raise ConfigError("runs", rule, runs)
    return evidence
