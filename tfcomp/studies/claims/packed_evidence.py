"""Evidence packed for keeping: what verdicts need of runs, and no weights.

A sweep becomes one file, `<sweep>.tar.xz`, with the small text files of its
finished runs, threshold studies and prediction studies as they are, but for
flags that say where things lay on the machine that made them. `read_evidence`
looks into such files as into folders. The same runs give the same bytes.
"""

import contextlib
import glob
import io
import itertools
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import LOCATION_FLAGS
from tfcomp.evaluation.measure_files import MEASURES_FILE
from tfcomp.storage.files import DamagedFileError, write_bytes
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE
from tfcomp.storage.run_search import find_folders, find_runs
from tfcomp.studies.claims.threshold_studies import TABLES, find_studies

ENDING = ".tar.xz"
STUDY_FLAGS = "threshold.flags"
RUN_FILES = (FLAGS_FILE, METRICS_FILE, MEASURES_FILE)
STUDY_FILES = (STUDY_FLAGS, *TABLES)
PREDICTION_FLAGS = "predict.flags"
PREDICTION_FILES = (PREDICTION_FLAGS, "*.csv", "networks/*.json")


def pack_evidence(patterns: Sequence[str], output: Path) -> list[Path]:
    """Writes one file for every sweep, study or single run.

    Args:
        patterns: Run folders or folders that contain them. Trainings of a
            threshold study are left out: its tables are the evidence.
        output: The folder to write to; made if it does not exist.

    Returns:
        The files that were written; of none that stay as they are.

    Raises:
        RunError: If two sweeps have one name.
        OSError: If a file cannot be read or written.
    """
    studies = find_studies(patterns)
    packs: dict[Path, list[Path]] = {}
    for folder in studies:
        packs[folder] = [folder / name for name in STUDY_FILES]
    for folder in find_folders(patterns, lambda n: PREDICTION_FLAGS in n):
        found = map(folder.glob, PREDICTION_FILES)
        packs[folder] = list(itertools.chain.from_iterable(found))
    for run in find_runs(patterns):
        if not any(study in run.parents for study in studies):
            sweep = run.parents[1] if run.parent.name == "trials" else run
            files = [run / name for name in RUN_FILES]
            packs.setdefault(sweep, []).extend(files)
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


def pack_files(folder: Path, files: Sequence[Path]) -> bytes:
    """An archive of files that exist, named from the folder on."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
        for file in sorted(filter(Path.exists, files)):
            content = file.read_bytes()
            if file.suffix == ".flags":
                content = remove_places(content)
            # No owner and no time: they are not evidence.
            entry = tarfile.TarInfo(str(file.relative_to(folder.parent)))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def remove_places(flags: bytes) -> bytes:
    """The lines of a flagfile without those that name places."""
    starts = tuple(f"--{name}=".encode() for name in LOCATION_FLAGS)
    lines = flags.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(starts))


@contextlib.contextmanager
def unpack(patterns: Sequence[str]) -> Iterator[list[str]]:
    """Gives patterns that match what packed files hold, too.

    The files may be matched themselves, or lie in folders that are.

    Raises:
        DamagedFileError: If one of the files is no such archive.
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
                with tarfile.open(path) as tar:
                    tar.extractall(Path(place, str(number)), filter="data")
            except (tarfile.TarError, EOFError, OSError) as error:
                raise DamagedFileError(path, error) from error
        yield [*patterns, place] if files else list(patterns)
