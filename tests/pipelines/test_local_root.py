"""The folder of a local pipeline, and the command's refusals."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.local import local_pipeline as local_run
from pipelines.local.root import LocalRoot
from pipelines.profile import Profile
from pipelines.steps.step_events import MARK
from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError


def test_new_folder_and_resume(tmp_path: Path) -> None:
    root = LocalRoot(str(tmp_path / "root"))
    root.check("own", resume=False)
    assert not root.path.exists()
    with root.claim("own"):
        assert (root.path / "pipeline.json").exists()
    root.check("own", resume=True)
    with pytest.raises(RunError, match="holds a pipeline already: add --res"):
        root.check("own", resume=False)
    with pytest.raises(RunError, match="holds the profile own, not other"):
        root.check("other", resume=True)


def test_resume_may_be_the_first_start(tmp_path: Path) -> None:
    LocalRoot(str(tmp_path)).check("own", resume=True)


@pytest.mark.parametrize("resume", [True, False])
def test_folder_of_something_else(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match="holds something else"):
        LocalRoot(str(tmp_path)).check("own", resume)


def test_folder_in_use(tmp_path: Path) -> None:
    root = LocalRoot(str(tmp_path / "root"))
    with root.claim("own"):
        with pytest.raises(RunError, match="another process is working"):
            with root.claim("own"):
                pass
    with root.claim("own"):
        assert len(list(root.path.glob(".alive-*"))) == 1
    assert not list(root.path.glob(".alive-*"))


def test_path_that_the_sdk_would_damage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must not have python3"):
        LocalRoot(str(tmp_path / "python3.11" / "root"))


# The end of a local run


def print_events(*events: tuple[str, str]) -> Callable:
    """A pipeline that only says how its steps ended, then fails."""

    def pipeline(**arguments: object) -> None:
        for step, state in events:
            event = {"step": step, "state": state, "text": "so", "seconds": 1}
            print(f"{MARK}{json.dumps(event)}")
        raise RuntimeError("Pipeline finished with status FAILURE")

    return pipeline


@pytest.mark.parametrize(
    ("events", "line"),
    [
        (
            [("trainer", "done"), ("evaluator", "stopped")],
            "evaluator: so; nothing was pushed (see ",
        ),
        (
            [("trainer", "started")],
            "trainer: ended without a reason, as if it had been killed; "
            "nothing was pushed (see ",
        ),
        ([], "the SDK gave up; nothing was pushed (see "),
        ([("pusher", "done"), ("report", "failed")], "report: so (see "),
    ],
)
def test_reason_of_a_failure(
    events: list,
    line: str,
    tiny_profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    pipeline = print_events(*events)
    monkeypatch.setattr(local_run, "make_pipeline", lambda: pipeline)
    monkeypatch.setattr(local_run, "start_sdk", lambda root: None)
    root = LocalRoot(str(tmp_path / "root"))
    options = local_run.LocalOptions(str(tmp_path / "out"))
    with pytest.raises(local_run.PipelineError) as caught:
        local_run.run_pipeline(tiny_profile, root, options)
    assert str(caught.value).startswith(line)
    assert caught.value.status == 1
    # What steps print is in the log, how they end on the terminal.
    assert MARK not in capsys.readouterr().out
    assert root.log.read_text().count(MARK) == len(events)


# The command


def run(*flags: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "pipelines.run_local", *flags],
        capture_output=True,
        text=True,
        cwd=cwd,
    )


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (
            ["--profile=nix"],
            "--profile must be one of paper, quick, smoke, or a folder with "
            "a profile.toml, got 'nix'",
        ),
        (["--workers=-1"], "--workers must be at least 0, got -1"),
        (["--export_dir="], "--export_dir must name a folder, got ''"),
        (
            ["--export_dir=/dev/null/out"],
            "--export_dir must name a folder that can be written, got "
            "'/dev/null/out'",
        ),
        (
            ["--pipeline_root=/dev/null"],
            "--pipeline_root must name a folder that can be written, got "
            "'/dev/null'",
        ),
        (
            ["--scheduler=nowhere"],
            "--scheduler must be the address of a running Dask scheduler, got "
            "'nowhere'",
        ),
        (["--profil=smoke"], "--profil is not a flag, did you mean --profile?"),
    ],
)
def test_bad_flags(flags: list[str], line: str, tmp_path: Path) -> None:
    result = run(*flags, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == f"error: {line}\n"
    assert not list(tmp_path.iterdir())


def test_root_that_holds_a_pipeline(
    write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    profile = write_profile()
    root = LocalRoot(str(tmp_path / "root"))
    with root.claim("own"):
        pass
    flags = (f"--profile={profile}", f"--pipeline_root={root.path}")
    result = run(*flags, cwd=tmp_path)
    assert result.returncode == 2
    assert "holds a pipeline already: add --resume" in result.stderr


def test_help_is_fast_and_needs_no_sdk(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pipelines import compile, reproduce, run_local\n"
        "for module in (compile, reproduce, run_local):\n"
        "    assert module.main(['', '--help']) == 0\n"
        "found = {'kfp', 'tensorflow', 'matplotlib'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    start = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "--pipeline_root=" in result.stdout
    assert time.monotonic() - start < 30
