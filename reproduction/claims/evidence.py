"""Evidence on claims: finished runs and threshold studies, also packed."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.groups import Group, group_runs
from reproduction.packing import write_pack
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.flagfiles import expand_flagfiles
from tfcomp.config.run_config import LOCATION_FLAGS, split_names
from tfcomp.storage import files
from tfcomp.storage.run_folder import find_folders
from tfcomp.tables.flatten import Flags, parse_run_flags
from tfcomp.tables.packs import ENDING, read_pack
from tfcomp.tables.read import print_left_out, read_results

if TYPE_CHECKING:
    from pandas import DataFrame

# Seeds of rounds: trials, on which rules were written; the first evidence that
# they judged; fresh ones of version 3; unseen ones of version 4.
TRIALS, FIRST, FRESH, UNSEEN = range(4)
FIRST_SEED, NEXT_SEED, UNSEEN_SEED = 100, 200, 300
LIMITS = (0, FIRST_SEED, NEXT_SEED, UNSEEN_SEED, 2**32)
# The number that threshold studies count: all examples, stripes included.
TOTAL = "num_examples"
# Columns that identify a search; one with two criteria has two rows.
SEARCH = ["kind", "region", "grid_size", "seed"]
# The files of a threshold study that are read, with the columns of each.
TABLES = {
    "thresholds.csv": [
        *SEARCH,
        *("criterion", "target", "num_bumps", TOTAL, "reached"),
    ],
    "slopes.csv": "kind region criterion quantity slope low high not_reached "
    "note".split(),
}
STUDY_FLAGS = "threshold.flags"


@dataclass(frozen=True, eq=False)
class ThresholdStudy:
    """Searches for the least number of examples that reach a target."""

    path: Path
    thresholds: DataFrame  # a row a search and criterion
    slopes: DataFrame  # a row a fit
    flags: Flags

    def limit(self, count: int) -> ThresholdStudy:
        """Returns the first seeds, with their own slopes if there are more."""
        from pandas import DataFrame

        table = self.thresholds
        kept = table[table["seed"].isin(sorted(table["seed"].unique())[:count])]
        if len(kept) == len(table):
            return self
        from reproduction.thresholds.command import list_slopes

        rows: list[Any] = kept.to_dict("records")
        slopes = DataFrame(list_slopes(rows))
        return replace(self, thresholds=kept, slopes=slopes)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Runs and searches that decide claims; notes name what was left out."""

    groups: tuple[Group, ...] = ()
    studies: tuple[ThresholdStudy, ...] = ()
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def rounds(self) -> list[Evidence]:
        """The runs and the searches of each round of seeds."""
        found = []
        for seeds in itertools.starmap(range, itertools.pairwise(LIMITS)):
            groups = filter(len, (group.keep(seeds) for group in self.groups))
            studies = [
                study
                for study in self.studies
                if len(values := study.thresholds["seed"])
                and values.map(seeds.__contains__).all()
            ]
            found.append(Evidence(tuple(groups), tuple(studies)))
        return found

    def limit(self, count: int) -> Evidence:
        """Returns the first seeds of each group, as many as a plan names."""
        groups = tuple(g.keep(g.seeds[:count]) for g in self.groups)
        return Evidence(groups, tuple(s.limit(count) for s in self.studies))

    def take_controls(self) -> Evidence:
        """Returns networks trained on everything, as if on their own region."""
        chosen = [g for g in self.groups if g.flags.get("train_all")]
        own = {"train_all": False}
        return Evidence(tuple(replace(g, flags=g.flags | own) for g in chosen))

    @property
    def num_runs(self) -> int:
        return sum(map(len, self.groups))

    @property
    def num_searches(self) -> int:
        tables = [study.thresholds[SEARCH] for study in self.studies]
        return sum(len(table.drop_duplicates()) for table in tables)


def read_evidence(patterns: Sequence[str]) -> Evidence:
    """Reads all finished runs and threshold studies that patterns match.

    They may lie at any depth, and in packed files. Raises ConfigError if a
    pattern matches nothing.
    """
    results = read_results(patterns, history=False)
    notes, studies = list(results.notes), []
    for folder in find_studies(patterns):
        try:
            studies.append(_read_study(folder))
        except (OSError, ValueError, RunError) as error:
            notes.append(f"{folder.name} cannot be read: {error}")
    groups = tuple(group_runs(results.loaded))
    return Evidence(groups, tuple(studies), tuple(notes))


def read_some_evidence(runs: str) -> Evidence:
    """Reads all that `--runs` matches; raises ConfigError without a match."""
    evidence = read_evidence(split_names(runs))
    if not evidence.groups and not evidence.studies:
        why = f" ({evidence.notes[0]})" if evidence.notes else ""
        rule = f"must match finished runs or threshold searches{why}"
        raise ConfigError("runs", rule, runs)
    return evidence


def find_studies(patterns: Sequence[str]) -> list[Path]:
    """Returns folders with one of the tables of a threshold study."""
    return find_folders(patterns, lambda names: not names.isdisjoint(TABLES))


def _read_study(path: Path) -> ThresholdStudy:
    """Reads a study, which may lack files; DamagedFileError, or ValueError."""
    file = path / STUDY_FLAGS
    flags = parse_run_flags(files.read_text(file))[0] if file.exists() else {}
    thresholds, slopes = (_read_table(path / name) for name in TABLES)
    return ThresholdStudy(path, thresholds, slopes, flags)


def _read_table(path: Path) -> DataFrame:
    """Reads the columns of a table; those that it lacks are empty."""
    import pandas

    if not path.exists():
        return pandas.DataFrame(columns=TABLES[path.name])
    # "none" and "NA" are words here.
    try:
        table = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise files.DamagedFileError(path, error) from error
    if "kind" not in table:
        raise files.DamagedFileError(path, "it has no column kind")
    return table.reindex(columns=TABLES[path.name])


def read_study_flags(line: str) -> Flags:
    """Returns all flags of a study, from a flagfile and flags that follow."""
    lines = expand_flagfiles(f"--flagfile={line}".split())
    return parse_run_flags("\n".join(lines))[0]


def pack_evidence(patterns: Sequence[str], output: Path) -> list[Path]:
    """Packs runs, without weights, and threshold studies.

    The same runs give the same bytes. Returns new files. ConfigError for
    nothing to pack, RunError for sweeps of one name, or files with more runs.
    """
    studies = find_studies(patterns)
    results = read_results(patterns, history=False, without=studies)
    runs = results.runs
    parents = (Path(folder).parent for folder in runs["folder"])
    sweeps = set(zip(runs["study"], parents, strict=True))
    names = [*(n for n, _ in sweeps), *(folder.name for folder in studies)]
    if not names:
        rule = "must match finished runs or studies"
        raise ConfigError("runs", rule, ",".join(patterns))
    if len(set(names)) < len(names):
        raise RunError(f"--runs: two sweeps have one name in {sorted(names)}")
    for pack in (output / f"{study}{ENDING}" for study, _ in sweeps):
        packed = read_pack(pack) if pack.exists() else []
        if lost := {run.row["run"] for run in packed}.difference(runs["run"]):
            rule = f"must keep the runs of {pack}, but {len(lost)} are not"
            raise RunError(f"--pack {rule} among --runs: name another folder")
    print_left_out(results.notes)
    written = []
    for study, rows in runs.groupby("study"):
        chosen = results.numbers[results.numbers["run"].isin(rows["run"])]
        path, is_new = write_pack(output, str(study), (rows, chosen))
        written += [path] * is_new
    for folder in studies:
        paths = map(folder.joinpath, (STUDY_FLAGS, *TABLES))
        for file in filter(Path.exists, paths):
            written += copy_text(file, output, folder.name)
    return written


def copy_text(source: Path, output: Path, study: str) -> list[Path]:
    """Copies a text file without flags of places; returns it if it is new."""
    target = files.make_folder(output / study) / source.name
    starts = tuple(f"--{name}=".encode() for name in LOCATION_FLAGS)
    lines = source.read_bytes().splitlines(keepends=True)
    content = b"".join(line for line in lines if not line.startswith(starts))
    if target.exists() and target.read_bytes() == content:
        return []
    files.write_bytes(target, content)
    return [target]
