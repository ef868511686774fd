"""The README's examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tfcomp import analyze
from tfcomp import train
from tfcomp.config.flagfiles import list_flagfiles

README = Path(__file__).parents[1] / "README.md"


def find_block(marker: str) -> str:
    """The code block after an HTML comment."""
    pattern = rf"<!-- {marker} -->\n```\w*\n(.*?)```"
    return re.search(pattern, README.read_text("utf-8"), re.DOTALL)[1]


def test_analysis_of_another_model(capsys: pytest.CaptureFixture) -> None:
    exec(compile(find_block("runnable"), "README.md", "exec"), {})
    lines = capsys.readouterr().out.split()
    assert lines[::2] == ["hidden", "pixels"]
    assert all(0.5 <= float(score) <= 1 for score in lines[1::2])


def test_own_model_as_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_parts.py").write_text(find_block("plugin"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    status = train.main(
        [
            "train",
            "--flagfile=smoke.flags",
            "--plugins=my_parts",
            "--model=linear",
            "--run_name=linear",
        ]
    )
    assert status == 0
    assert (tmp_path / "tensorboard_logs/linear/metrics.json").exists()
    assert (tmp_path / "saved_models/linear/1/saved_model.pb").exists()


def test_own_factors_renderer_region_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_rings.py").write_text(find_block("own factors"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    command = re.search(
        r"python -m tfcomp.train (--plugins=my_rings .*)", README.read_text()
    )
    flags = [*command[1].split(), "--epochs=3", "--layerwise_every=2"]
    assert train.main(["train", *flags]) == 0
    run = tmp_path / "tensorboard_logs/rings"
    assert (run / "metrics.json").exists()
    assert analyze.main(["analyze", f"--run={run}"]) == 0
    assert (run / "analysis" / "landscape_rings.png").exists()


def test_commands_do_their_own_set_up() -> None:
    for marker in ("donut command", "test command"):
        command = find_block(marker)
        assert command.startswith("python3 -m venv .venv && ")
        assert command.count("\n") == 1


def test_every_flagfile_is_listed() -> None:
    """Experiments in the README, those of other commands in their page."""
    readme = README.read_text("utf-8")
    docs = README.parent.glob("docs/*.md")
    pages = "".join(path.read_text("utf-8") for path in docs)
    for name in list_flagfiles():
        if name.startswith(("sweep", "threshold")):
            assert f"{name}`" in pages or f"={name} " in pages, name
        else:
            assert f"`{name.removesuffix('.flags')}`" in readme


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_tables_of_a_page_are_those_of_the_commands(page: str) -> None:
    root = README.parent
    text = (root / page).read_text("utf-8")
    named = re.findall(r"<!-- (docs/\S+\.md) -->\n", text)
    assert named
    for name in named:
        table = (root / name).read_text("utf-8")
        assert f"<!-- {name} -->\n{table}" in text, name
