"""The folder of a pipeline on this machine."""

from pathlib import Path

import pytest

from pipelines.pipeline_root import PipelineRoot
from tfcomp.config.errors import ConfigError, RunError


def test_new_folder_and_resume(tmp_path: Path) -> None:
    root = PipelineRoot(str(tmp_path / "root"))
    root.check("own", resume=False)
    assert not root.path.exists()
    # An empty folder, where the first start may say --resume.
    PipelineRoot(str(tmp_path)).check("own", resume=True)
    with root.claim("own"):
        assert (root.path / "pipeline.json").exists()
    root.check("own", resume=True)
    with pytest.raises(RunError, match="was interrupted, .*: add --resume"):
        root.check("own", resume=False)
    with pytest.raises(RunError, match="holds the profile own, not other"):
        root.check("other", resume=True)


def test_result_of_a_finished_pipeline(tmp_path: Path) -> None:
    root, inputs = PipelineRoot(str(tmp_path)), {"profile": "{}", "code": "a"}
    assert root.read_result(inputs) == []
    report = root.work / "report" / "report.html"
    report.parent.mkdir(parents=True)
    report.touch()
    root.write_result("own", inputs, ["done  trainer"])
    assert root.read_result(inputs) == ["done  trainer"]
    root.check("own", resume=True)
    assert root.read_result(inputs | {"code": "b"}) == []
    report.unlink()
    assert root.read_result(inputs) == []
    report.touch()
    with root.claim("own"):  # it runs again
        assert root.read_result(inputs) == []


@pytest.mark.parametrize("resume", [True, False])
def test_folder_of_something_else(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match="holds something else"):
        PipelineRoot(str(tmp_path)).check("own", resume)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '"own"', "[" * 10_000, "\0"]
)
def test_damaged_marker(content: str, tmp_path: Path) -> None:
    (tmp_path / "pipeline.json").write_text(content)
    with pytest.raises(RunError, match="pipeline.json cannot be read"):
        PipelineRoot(str(tmp_path)).check("own", resume=True)


def test_folder_in_use(tmp_path: Path) -> None:
    root = PipelineRoot(str(tmp_path / "root"))
    with root.claim("own"):
        with pytest.raises(RunError, match="another process is working"):
            with root.claim("own"):
                pass
    with root.claim("own"):
        assert len(list(root.path.glob(".alive-*"))) == 1
    assert not list(root.path.glob(".alive-*"))


def test_path_that_the_sdk_would_damage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must not have python3"):
        PipelineRoot(str(tmp_path / "python3.11" / "root"))
