"""Commands as people type them who have not read the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tfcomp import __main__ as tfcomp
from tfcomp import __version__, train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import format_flags, parse_config

TINY = """
--flagfile=smoke.flags
--model=mlp
--depth=1
--width=4
--grid_size=8
--region=square:3-5
--epochs=2
--steps_per_epoch=2
--eval_every=0
--layerwise_every=0
--nopictures
--noexport
--run_name=tiny
"""
# In a folder with `tiny.flags` and three runs: `tiny` is finished, and `other`,
# which differs in its seed; `stopped` was interrupted.
CASES = {
    # What they type: exit status, and what the answer must say.
    "": (0, "tfcomp train"),
    "help": (0, "Try first: tfcomp train smoke"),
    "--version": (0, f"tfcomp {__version__}"),
    "help analyze": (0, "--run="),
    "trian tiny": (2, "'trian' is not a command, did you mean train?"),
    "train": (0, "Try first: tfcomp train smoke"),
    "train tiny": (0, "relative_mse"),
    "train tiny.flags": (0, "relative_mse"),
    "train --flagfile tiny": (0, "relative_mse"),
    "train tiny --resume": (0, "relative_mse"),
    "train tinny": (2, "got 'tinny', did you mean tiny?"),
    "train smok": (2, "did you mean smoke?"),
    "train tiny width=8": (2, "'width=8', did you mean --width=8?"),
    "train tiny --widht=8": (2, "--widht is not a flag, did you mean --width?"),
    "train tiny --width=8": (
        2,
        "--run_name=tiny belongs to a run with --width=4 (not 8): choose",
    ),
    "train --width=8 --seed=1 tiny": (2, "--width=4 (not 8), --seed=0 (not 1)"),
    "train tiny --overwrite --resume": (2, "--overwrite must not stand beside"),
    "train tiny --run_name=stopped": (
        2,
        "--run_name=stopped exists in tensorboard_logs and was interrupted: "
        "add --resume",
    ),
    "train tiny donut --depth=999999": (2, "--depth must be at most 1000"),
    "analyze": (2, "--run must name a run folder"),
    "analyze nothing": (2, "--run must be a run folder, nothing does not"),
    "analyze tensorboard_logs/stopped": (2, "is not finished, it has no"),
    "analyze tiny --run=tiny": (2, "'tiny': --run says it already"),
    "compare": (2, "--runs must match at least one finished run"),
    "compare tensorboard_logs/tiny tensorboard_logs/other": (0, "| 2 |"),
    "compare tensorboard_logs/*": (0, "| 2 |"),
    "sweep": (0, "Try first: tfcomp sweep sweep_smoke"),
    "sweep smoke depth=2,3": (2, "'depth=2,3', did you mean --depth=2,3?"),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which somebody has worked."""
    folder = tmp_path_factory.mktemp("used")
    (folder / "tiny.flags").write_text(TINY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert train.main(["train", "--flagfile=tiny"]) == 0
        other = ["--flagfile=tiny", "--run_name=other", "--seed=1"]
        assert train.main(["train", *other]) == 0
        stopped = folder / "tensorboard_logs/stopped"
        stopped.mkdir()
        config = parse_config(["--flagfile=tiny", "--run_name=stopped"])
        (stopped / "run.flags").write_text(format_flags(config))
        yield folder


def list_files(folder: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("words", CASES)
def test_an_impatient_command_is_answered(
    words: str, used: Path, capsys: pytest.CaptureFixture
) -> None:
    """At once, in one line if it is a mistake, and nothing is written."""
    before = list_files(used)
    status, expected = CASES[words]
    try:
        found = tfcomp.main(["tfcomp", *words.split()])
        answer = capsys.readouterr().out
    except (ConfigError, RunError) as error:
        found, answer = getattr(error, "status", 2), str(error)
        assert "\n" not in answer
    assert (found, expected in answer) == (status, True), answer
    assert list_files(used) == before
