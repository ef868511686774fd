"""Evidence packed for keeping: what verdicts need of runs, and no weights.

A sweep becomes one file, `<sweep>.tar.xz`, with the small text files of its
finished runs, threshold studies and prediction studies as they are, but for
flags that say where things lay on the machine that made them. `read_evidence`
looks into such files as into folders. The same runs give the same bytes.
"""

from __future__ import annotations

import contextlib
import glob
import io
import itertools
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.flagfiles import expand_flagfiles
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig
from tfcomp.evaluation.measure_files import MEASURES_FILE
from tfcomp.storage.archives import ENDING, read_archive
from tfcomp.storage.files import DamagedFileError, read_text, write_bytes
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE
from tfcomp.storage.run_search import find_folders, find_runs

if TYPE_CHECKING:
    from pandas import DataFrame

Flags = dict[str, Any]
# The number that is counted: all examples, stripes included.
TOTAL = "num_examples"
# What identifies a search; one with two criteria has two rows.
SEARCH = ["kind", "region", "grid_size", "seed"]
# The files that are read, with the columns of each.
TABLES = {
    "thresholds.csv": [*SEARCH, "criterion", "num_bumps", TOTAL, "reached"],
    "slopes.csv": "kind region criterion quantity slope low high not_reached "
    "note".split(),
}
STUDY_FLAGS = "threshold.flags"
RUN_FILES = (FLAGS_FILE, METRICS_FILE, MEASURES_FILE)
STUDY_FILES = (STUDY_FLAGS, *TABLES)
PREDICTION_FLAGS = "predict.flags"
PREDICTION_FILES = (PREDICTION_FLAGS, "*.csv", "networks/*.json")
# The files of an archive that are read; their folders are named as they were.
_WANTED = re.compile(
    r"(.*/)?(run\.flags|metrics\.json|measures\.json|threshold\.flags|"
    r"predict\.flags|[^/]+\.csv|networks/[^/]+\.json)"
)


def parse_run_flags(text: str) -> tuple[Flags, dict[str, str]]:
    """Flags and comments of a `run.flags`, whatever version wrote it.

    A flag that the file lacks has its default; one that this version does not
    know is kept as text. Raises ValueError if a number is none.
    """
    flags = RunConfig().to_flags()
    origin = {}
    for line in text.splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            origin[name] = value
        elif line.startswith("--"):
            name, _, value = line[2:].partition("=")
            kind = type(flags.get(name, ""))
            flags[name] = value == "true" if kind is bool else kind(value)
    return flags, origin


def read_flagfile(line: str) -> Flags:
    """All flags of a run or a study, from a flagfile and what follows it."""
    lines = expand_flagfiles(f"--flagfile={line}".split())
    return parse_run_flags("\n".join(lines))[0]


@dataclass(frozen=True, eq=False)
class ThresholdStudy:
    """Tables of a folder: a row a search and criterion, a row a fit.

    The flags are empty if the folder has none.
    """

    path: Path
    thresholds: DataFrame
    slopes: DataFrame
    flags: Flags = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The folder, with the one that it is in."""
        return "/".join(self.path.parts[-2:]).lstrip("/")


def find_studies(patterns: Sequence[str]) -> list[Path]:
    """Folders with one of the tables."""
    return find_folders(patterns, lambda files: not files.isdisjoint(TABLES))


def read_study(path: Path) -> ThresholdStudy:
    """Reads a study, whose files may lack; raises as `read_run`."""
    file = path / STUDY_FLAGS
    flags = parse_run_flags(read_text(file))[0] if file.exists() else {}
    tables = [_read_table(path / n, columns) for n, columns in TABLES.items()]
    return ThresholdStudy(path, *tables, flags)


def count_searches(studies: Iterable[ThresholdStudy]) -> int:
    """Number of searches in all studies."""
    return sum(len(s.thresholds[SEARCH].drop_duplicates()) for s in studies)


def _read_table(path: Path, columns: Sequence[str]) -> DataFrame:
    """Some columns of a table; those that it lacks are empty."""
    import pandas

    if not path.exists():
        return pandas.DataFrame(columns=columns)
    # "none" and "NA" are words here.
    try:
        table = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise DamagedFileError(path, error) from error
    if "kind" not in table:
        raise DamagedFileError(path, "it has no column kind")
    return table.reindex(columns=columns)


def pack_evidence(patterns: Sequence[str], output: Path) -> list[Path]:
    """Writes one file for every sweep, study or single run below patterns.

    Trainings of a threshold study are left out: its tables are the evidence.

    Returns the files that were not there as they are. Raises ConfigError if
    there is nothing to pack, RunError if two sweeps have one name.
    """
    studies = find_studies(patterns)
    packs = {s: [s / name for name in STUDY_FILES] for s in studies}
    for folder in find_folders(patterns, lambda n: PREDICTION_FLAGS in n):
        found = map(folder.glob, PREDICTION_FILES)
        packs[folder] = list(itertools.chain.from_iterable(found))
    for run in find_runs(patterns):
        if not any(study in run.parents for study in studies):
            files = [run / name for name in RUN_FILES]
            packs.setdefault(find_sweep(run), []).extend(files)
    if not packs:
        rule = "must match finished runs or studies"
        raise ConfigError("runs", rule, ",".join(patterns))
    output.mkdir(parents=True, exist_ok=True)
    names = [folder.name for folder in packs]
    if len(set(names)) < len(names):
        raise RunError(f"--runs: two sweeps have one name in {sorted(names)}")
    written = []
    for folder, files in packs.items():
        path = output / f"{folder.name}{ENDING}"
        content = pack_files(folder, files)
        if not path.exists() or path.read_bytes() != content:
            write_bytes(path, content)
            written.append(path)
    return written


def find_sweep(run: Path) -> Path:
    """The folder of the sweep that a run belongs to, or its own."""
    return run.parents[1] if run.parent.name == "trials" else run


def pack_files(folder: Path, files: Sequence[Path]) -> bytes:
    """An archive of files that exist, named from the folder on."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
        for file in sorted(filter(Path.exists, files)):
            content = file.read_bytes()
            if file.suffix == ".flags":
                starts = tuple(f"--{name}=".encode() for name in LOCATION_FLAGS)
                lines = content.splitlines(keepends=True)
                content = b"".join(
                    line for line in lines if not line.startswith(starts)
                )
            # No owner and no time: they are not evidence.
            entry = tarfile.TarInfo(str(file.relative_to(folder.parent)))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


@contextlib.contextmanager
def unpack(patterns: Sequence[str]) -> Iterator[list[str]]:
    """Gives patterns that match the files of packed evidence as well.

    The packed files may be matched themselves, or lie in folders that are. What
    evidence needs of them is read in memory, and written anew. Raises
    DamagedFileError if one of them is damaged, or huge.
    """
    folders = find_folders(
        patterns, lambda names: any(n.endswith(ENDING) for n in names)
    )
    with tempfile.TemporaryDirectory() as place:
        files = [p for f in folders for p in sorted(f.glob(f"*{ENDING}"))]
        named = itertools.chain.from_iterable(map(glob.glob, patterns))
        files += [Path(name) for name in named if name.endswith(ENDING)]
        for number, path in enumerate(files):
            try:
                found = read_archive(path, _WANTED)
                for name, content in found.items():
                    file = Path(place, str(number), name)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
            except OSError as error:
                raise DamagedFileError(path, error) from error
        yield [*patterns, place] if files else list(patterns)
