"""Run folders: their owners, files and states, and the search for them.

docs/outputs.md lists the files; `metrics.json`, the last, marks a finished run.
Published models are run folders that come with a clone: `<name>/` in
`saved_models/published` has the `run.flags`, `metrics.json` and `model.keras`
of a run, and `load_run` reads it as any other run.
"""

import contextlib
import dataclasses
import glob
import os
import shlex
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfcomp.config.errors import (
    ConfigError,
    RunError,
    describe_refusal,
    suggest,
)
from tfcomp.config.process import count_memory
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import format_flags, parse_record, split_lines
from tfcomp.storage import files
from tfcomp.storage.files import DamagedFileError, lock_folder

FLAGS_FILE = "run.flags"
HISTORY_FILE = "history.csv"
METRICS_FILE = "metrics.json"
MODEL_FILE = "model.keras"
SAMPLES_FILE = "samples.png"
WEIGHTS_HASH = "weights_hash"  # the entry of `metrics.json`
PUBLISHED = Path("saved_models", "published")
CLONE = Path(__file__).parents[2]
TRIALS = "trials"  # the folder of runs in a sweep's folder
SWEEP_FLAGS = "sweep.flags"
# What training, `tfcomp analyze` and TensorBoard's projector write into a run
# folder. The flags are no part of it: they tell whose folder it is.
OUTPUTS = (
    f"**/{files.PARTIAL}*",
    HISTORY_FILE,
    METRICS_FILE,
    MODEL_FILE,
    SAMPLES_FILE,
    "preview.png",
    "events.out.tfevents.*",
    "checkpoints/**/ckpt-*",
    f"checkpoints/**/{HISTORY_FILE}",
    "checkpoints/**/diverged.txt",
    "outputs/epoch_*.npz",
    "projector_config.pbtxt",
    "projector/*.tsv",
    "projector/sprite.png",
    "analysis/report.html",
    "analysis/*.csv",
    "analysis/*.pdf",
    "analysis/*.png",
)
# Removed if nothing else lies there.
OUTPUT_FOLDERS = (
    "checkpoints/*",
    "checkpoints",
    "outputs",
    "projector",
    "analysis",
)
# Entries of `metrics.json` that have texts; all others have only numbers.
WORDS = (
    "reference",
    "differences",
    "copies",
    "own_measures",
    "version",
    "stages",
    WEIGHTS_HASH,
)


@contextlib.contextmanager
def claim_run(config: RunConfig, header: str = "") -> Iterator[None]:
    """Creates and locks the folder of a run, or takes it over to resume.

    Args:
        config: The run; with `overwrite`, files of the earlier run in this
            folder are removed.
        header: Comments above the flags.

    Raises:
        RunError: If the folder is in use, or holds something else.
    """
    path = Path(config.run_dir)
    _check_owner(path, config)
    files.make_folder(path)
    if config.export:
        files.make_folder(Path(config.export_path))

    with lock_folder(path):
        if config.overwrite:
            remove_outputs(path)
        if config.overwrite or not (path / FLAGS_FILE).exists():
            text = header + format_flags(config)
            files.write_text(path / FLAGS_FILE, text)
        yield


def remove_outputs(folder: Path) -> None:
    """Removes what tfcomp wrote into a run folder, except for its flags.

    Files of the user, which match no pattern of `OUTPUTS`, stay, and so do
    their folders.
    """
    # Links go first: through them patterns would reach files of other runs.
    for pattern in reversed(OUTPUT_FOLDERS):
        for path in folder.glob(pattern):
            if path.is_symlink():
                path.unlink()

    for pattern in OUTPUTS:
        for path in folder.glob(pattern):
            files.remove(path)

    for pattern in OUTPUT_FOLDERS:
        for path in folder.glob(pattern):
            if path.is_dir() and not os.listdir(path):
                path.rmdir()


def find_finished(config: RunConfig) -> dict[str, Any] | None:
    """Returns the metrics of a run if it needs no training, else None.

    It needs none if it is finished and undamaged, unless `overwrite` is set.

    Raises:
        RunError: If its folder belongs to another run.
    """
    folder = Path(config.run_dir)
    _check_owner(folder, config)
    if config.overwrite or not is_finished(folder):
        return None
    return read_metrics(folder)


def read_config(path: str | Path) -> RunConfig:
    """Reads the settings of a finished run from its folder.

    Args:
        path: The run folder, which may have been moved since the training.

    Raises:
        RunError: If the folder has no finished run.
    """
    path = Path(path)
    problem = _find_problem(path)
    if problem:
        raise RunError(f"--run must be a run folder, {path} {problem}")
    try:
        config = make_config(read_flags(path))
    except DamagedFileError:
        raise
    except (ConfigError, RunError) as error:
        rule = f"is of another version of tfcomp ({error})"
        raise RunError(f"--run={path} {rule}") from error

    for name in (METRICS_FILE, MODEL_FILE):
        if not (path / name).exists():
            problem = f"is not finished, it has no {name}: go on with"
            raise RunError(f"--run={path} {problem} {describe_resume(path)}")
    return dataclasses.replace(config, log_dir=str(path.parent))


def _find_problem(path: Path) -> str:
    """Tells why a path is no run folder; an empty text if it is one."""
    if not os.path.isdir(path):  # `Path.is_dir` raises for a long name
        return "does not exist"
    if (path / TRIALS).is_dir():
        runs = f"{path}/trials/*"
        return f"is a sweep: name its runs, as {runs}, or use tfcomp.load_sweep"
    dangling = _find_dangling(path)
    if dangling:
        return dangling
    if not (path / FLAGS_FILE).exists():
        return "has no run.flags"
    return ""


def _find_dangling(path: Path) -> str:
    """Tells which file of a run is a link whose target is missing.

    Returns:
        The end of a sentence with the cure, or an empty text.
    """
    for name in (FLAGS_FILE, METRICS_FILE, MODEL_FILE):
        file = path / name
        if file.is_symlink() and not file.exists():
            cure = "fetch it (git annex get, dvc pull), or remove the link"
            return f"has only a link in place of {name}: {cure}"
    return ""


def describe_resume(path: Path) -> str:
    """Returns the command that finishes or repairs a run in this folder."""
    command = [
        "tfcomp",
        "train",
        str(path / FLAGS_FILE),
        # The folder may have been moved since.
        f"--log_dir={path.parent}",
        f"--run_name={path.name}",
        "--resume",
    ]
    return shlex.join(command)


def read_flags(path: Path) -> dict[str, Any]:
    """Returns the flags in the `run.flags` of a run folder."""
    return parse_record(split_lines(read_flags_text(path)))


def read_flags_text(path: Path) -> str:
    """Returns the text of `run.flags`; DamagedFileError if it has no flags."""
    text = files.read_text(path / FLAGS_FILE)
    if not split_lines(text):
        raise DamagedFileError(path / FLAGS_FILE, "it has no flags")
    return text


def read_metrics(path: Path) -> dict[str, Any]:
    """Reads the `metrics.json` of a run.

    Raises:
        DamagedFileError: If it has no scores, or a text in place of a number.
    """
    file = path / METRICS_FILE
    metrics = files.read_json(file)
    scores = select_scores(metrics).values()
    if not scores or not all(isinstance(entry, dict) for entry in scores):
        raise DamagedFileError(file, "it has no scores")
    for place, text in _list_texts(metrics):
        reason = f"{place} must be a number, got {text!r}"
        raise DamagedFileError(file, reason)
    return metrics


def _list_texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yields the texts at any depth, except for entries of `WORDS`.

    Yields:
        The place, as `ood/mse`, and the text.
    """
    if isinstance(value, str):
        yield place, value
        return

    parts: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        parts = value
    elif isinstance(value, list):
        parts = dict(enumerate(value))
    for name, inner in parts.items():
        if name in WORDS:
            continue
        below = str(name)
        if place:
            below = f"{place}/{name}"
        yield from _list_texts(inner, below)


def read_history(path: Path) -> dict[int, dict[str, float]]:
    """Reads the `history.csv` of a run.

    Returns:
        Numbers by epoch, then by tag (the name of a score).

    Raises:
        DamagedFileError: If it is empty, its last row is cut off, or a cell
            has no number.
    """
    rows = files.read_csv(path)
    if not rows:
        raise DamagedFileError(path, "it has no rows")

    history: dict[int, dict[str, float]] = {}
    for row in rows:
        try:
            epoch = int(row.pop("epoch"))
            history[epoch] = {
                tag: float(text)
                for tag, text in row.items()
                if text  # an epoch lacks what is not scored in it
            }
        except KeyError:
            reason = "it has no column epoch"
            raise DamagedFileError(path, reason) from None
        except ValueError as error:
            raise DamagedFileError(path, error) from error
    return history


def find_metrics(path: Path) -> dict[str, Any] | None:
    """Returns the metrics of a run; None if they are absent or damaged."""
    try:
        return read_metrics(path)
    except (OSError, DamagedFileError):
        return None


def is_finished(path: Path) -> bool:
    """Checks whether a run has its scores and its model, both undamaged."""
    try:
        read_metrics(path)
        check_model(path / MODEL_FILE)
        with zipfile.ZipFile(path / MODEL_FILE) as archive:
            return archive.testzip() is None
    except Exception:  # a damaged file raises errors of many kinds
        return False


def select_scores(metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the sets of scores of metrics: `id`, `ood`, `ood_plus` etc."""
    scores = {}
    for name, entry in metrics.items():
        if name.startswith(("id", "ood")):
            scores[name] = entry
    return scores


def check_model(path: Path) -> None:
    """Raises a DamagedFileError for a model that would fill the memory."""
    with zipfile.ZipFile(path) as archive:
        sizes = [member.file_size for member in archive.infolist()]
    size = sum(sizes)
    if size > count_memory():
        raise DamagedFileError(path, f"it unpacks to {size >> 20:,} MB")


def find_runs(patterns: Sequence[str], flag: str = "runs") -> list[Path]:
    """Returns folders of finished runs; prints those that cannot be read.

    Args:
        patterns: Paths of runs, sweeps or folders of them, with `*` or `**`.
        flag: The flag that names them, for errors.

    Raises:
        ConfigError: If there is no pattern, or a pattern matches nothing.
    """
    return find_folders(
        patterns,
        is_wanted={FLAGS_FILE, METRICS_FILE}.issubset,
        report=_report_unreadable,
        flag=flag,
    )


def find_folders(
    patterns: Sequence[str],
    is_wanted: Callable[[set[str]], bool],
    report: Callable[[OSError], None] | None = None,
    flag: str = "runs",
) -> list[Path]:
    """Returns folders at or below patterns whose file names are wanted.

    Args:
        patterns: Paths, with `*` or `**`.
        is_wanted: Tells from the names in a folder whether it is returned.
        report: Called for each folder that cannot be read.
        flag: The flag that names the patterns, for errors.

    Raises:
        ConfigError: If there is no pattern, or a pattern matches nothing.
    """
    if not patterns:
        raise ConfigError(flag, "must name run folders", "")

    folders = set()
    visited: set[str] = set()
    for pattern in patterns:
        for match in match_paths(pattern, flag):
            walk = os.walk(match, onerror=report, followlinks=True)
            for folder, subfolders, names in walk:
                path = os.path.realpath(folder)
                # `os.walk` does not enter subfolders that are cleared.
                if path in visited:
                    subfolders.clear()  # a link can lead back
                    continue

                visited.add(path)
                if FLAGS_FILE in names:
                    subfolders.clear()  # a run contains no other runs
                if is_wanted(set(names)):
                    folders.add(Path(path))
    return sorted(folders)


def match_paths(pattern: str, flag: str = "runs") -> list[str]:
    """Returns the paths that match a pattern.

    The longest beginning that exists is taken as it is, and only the rest is a
    pattern: a folder `logs/[old]` needs no escapes in `logs/[old]/*`.

    Args:
        pattern: A path, with `*` or `**`.
        flag: The flag that names it, for errors.

    Raises:
        ConfigError: If nothing matches, or `/` does (as `$RUN/` without RUN):
            the search below it would read all files of the machine.
    """
    path = Path(pattern).expanduser()
    existing = path
    while not os.path.lexists(existing):
        existing = existing.parent
    matches = [str(path)]
    if existing != path:
        rest = str(path.relative_to(existing))
        names = glob.glob(rest, root_dir=existing, recursive=True)
        matches = [str(existing / name) for name in sorted(names)]
    if not matches:
        raise ConfigError(flag, "must match a folder", pattern)
    if any(os.path.realpath(match) == "/" for match in matches):
        rule = "must be a folder of runs, not the root of all folders"
        raise ConfigError(flag, rule, pattern)
    return matches


def list_published(source: str | Path = "") -> list[str]:
    """Lists the names of published models, for `load_published`.

    Args:
        source: A folder that contains finished runs, at any depth. The default
            is `saved_models/published` of the working directory, else of the
            clone that tfcomp runs from.

    Returns:
        Paths of the models in this folder, sorted, as `bumps/cnn/corner_9`.

    Raises:
        RunError: If there is no such folder, or no model in it.

    Example:
        >>> "paper/donut" in tfcomp.list_published()
        True
    """
    folder = _find_published_folder(source)
    names = []
    for file in folder.rglob(METRICS_FILE):
        name = file.parent.relative_to(folder)
        names.append(name.as_posix())
    if not names:
        raise RunError(f"no published models in {folder}")
    return sorted(names)


def find_published(name: str, source: str | Path = "") -> Path:
    """Returns the folder of a published model.

    Args:
        name: A name that `list_published` returns.
        source: As in `list_published`.

    Raises:
        RunError: If there is no such model.
    """
    names = list_published(source)
    if name not in names:
        hint = suggest(name, names) or ": tfcomp.list_published() has the names"
        raise RunError(f"{name!r} is not a published model{hint}")
    return _find_published_folder(source) / name


def _find_published_folder(source: str | Path) -> Path:
    """Returns the folder of published models, as `list_published` explains."""
    if source:
        return Path(source).expanduser()
    for folder in (PUBLISHED, CLONE / PUBLISHED):
        if folder.is_dir():
            return folder
    raise RunError(
        "published models come with a clone of the repository, not with the "
        f"installed package: work in a clone, or name its {PUBLISHED} as source"
    )


def _report_unreadable(error: OSError) -> None:
    """Prints the folder that cannot be read, and why."""
    # A folder that was removed since it was listed, or a file that matches a
    # pattern, is no problem.
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        print(f"left out: {describe_refusal(error)}", file=sys.stderr)


def _check_owner(path: Path, config: RunConfig) -> None:
    """Checks that a run may use a folder: it is empty, or it is its own.

    Args:
        path: The run folder, which need not exist.
        config: The run.

    Raises:
        RunError: If the folder holds other files or another run, or the same
            run unfinished and `resume` is not set.
    """
    dangling = _find_dangling(path)
    if dangling:
        raise RunError(f"--run_name={config.run_name} {dangling}")
    if not (path / FLAGS_FILE).exists():
        _check_empty(path)
        return

    try:
        flags = read_flags(path)
    except (ConfigError, RunError) as error:
        rule = f"cannot be read ({error}): move its folder away"
        raise RunError(f"{path / FLAGS_FILE} {rule}") from error
    if config.overwrite:
        return

    differing = []
    for name, value in config.identity().items():
        if flags.get(name) != value:
            differing.append(f"--{name}={flags.get(name)} (not {value})")
    if differing:
        raise RunError(
            f"--run_name={config.run_name} belongs to a run with "
            f"{', '.join(differing)}: choose another --run_name, or replace "
            "that run by --overwrite"
        )
    if not (config.resume or is_finished(path)):
        raise RunError(
            f"--run_name={config.run_name} exists in {config.log_dir} and is "
            "not finished, or damaged: add --resume, or choose another "
            "--run_name"
        )


def _check_empty(path: Path) -> None:
    """Raises a RunError if a folder without flags holds files of the user."""
    # Hidden files are of the system, or partial files of a killed process.
    for file in path.glob("[!.]*"):
        if file.name == "lost+found":  # at the root of a file system
            continue
        rule = "must be new or name a run"
        reason = f"{path} holds something else ({file.name})"
        raise RunError(f"--run_name {rule}, {reason}")
