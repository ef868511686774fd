"""Folders that cannot be made are refused, and those that can are not."""

from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import check_run


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "must name a folder, got ''"),
        ("a\nb", "must be text without control characters"),
        ("a\u200bb", "must be text without control characters"),
        ("a\x1b[2Jb", "must be text without control characters"),
        ("/dev/null", "must name a folder that can be written"),
        ("/dev/null/x/y", "must name a folder that can be written"),
        ("dangling/x", "must name a folder that can be written"),
    ],
)
def test_folders_that_cannot_be_made(
    path: str, rule: str, working_folder: Path
) -> None:
    (working_folder / "dangling").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=f"--log_dir {rule}"):
        check_folder("log_dir", path)


def test_folders_that_can_be_made(working_folder: Path) -> None:
    (working_folder / "link").symlink_to(".")
    for path in (".", "a/b/c", "a" * 255, "link/x", str(working_folder)):
        check_folder("log_dir", path)
    assert len(list(working_folder.iterdir())) == 1


def test_run_with_a_name_that_is_too_long() -> None:
    with pytest.raises(RunError, match="--run must be a run folder"):
        check_run("a" * 300)
