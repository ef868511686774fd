"""Plugins: order, failures with their line, whose are imported."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import import_plugins

# A plugin whose model has a name that another one has.
TAKEN = """
from tfcomp.models import MODELS
@MODELS.register('mlp')
def build(config, dataset): ...
"""


def test_plugins_are_imported_in_order(plugins: Path) -> None:
    (plugins / "first_part.py").write_text("value = [1]\n")
    (plugins / "second_part.py").write_text(
        "import sys\nsys.modules['first_part'].value.append(2)\n"
    )
    import_plugins("first_part, second_part,")
    assert sys.modules["first_part"].value == [1, 2]


def test_missing_plugin_names_flag_and_value(plugins: Path) -> None:
    (plugins / "first_part.py").write_text("")
    with pytest.raises(ConfigError, match="named 'no_such_part'") as caught:
        import_plugins("first_part,no_such_part")
    assert caught.value.name == "plugins"
    assert caught.value.value == "first_part,no_such_part"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("import no_such_module", ConfigError, "No module.*'no_such_module'"),
        ("1 / 0", RunError, "--plugins: bad_part failed: .* division by"),
        ("def (", RunError, "--plugins: bad_part failed: "),
        ("from os import nothing_like_it", RunError, "cannot import name"),
        (TAKEN, RunError, "model 'mlp' is registered already"),
    ],
)
def test_plugin_that_fails(
    source: str, error: type[Exception], message: str, plugins: Path
) -> None:
    (plugins / "bad_part.py").write_text(source)
    with pytest.raises(error, match=message):
        import_plugins("bad_part")


def test_failure_shows_file_and_line(plugins: Path) -> None:
    file = plugins / "bad_part.py"
    for source, line in (("\n\n1 / 0", 3), ("x = 1\ndef (", 2)):
        file.write_text(source)
        with pytest.raises(RunError, match=rf"at {file}:{line}\)$"):
            import_plugins("bad_part")


FOREIGN = "--plugins=evil_part"
ASKED = "has --plugins=evil_part, .*--trust_flagfile"


@pytest.fixture
def evil(plugins: Path, working_folder: Path) -> Path:
    """A file that appears if somebody else's plugin has been imported."""
    mark = plugins / "mark"
    code = f"from pathlib import Path\nPath({str(mark)!r}).touch()\n"
    (plugins / "evil_part.py").write_text(code)
    return mark


def write_run(folder: Path, *lines: str, file: str = "run.flags") -> Path:
    """A finished run of somebody else, as far as nothing is loaded."""
    folder.mkdir()
    text = "\n".join(["--flagfile=smoke.flags", FOREIGN, *lines])
    (folder / file).write_text(text)
    (folder / "metrics.json").write_text('{"id": {"mse": 1.0}}')
    (folder / "model.keras").write_bytes(b"")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "analyze --run={run}",
        "train --flagfile={run}/run.flags --resume",
        "train --flagfile={run}/sweep.flags",
        "train --flagfile=mine.flags",
        "train --flagfile={run}/predict.flags",
        "train --flagfile={run}/renamed.flags",
        "train {run}/renamed.flags",
        "sweep --flagfile={run}/run.flags",
        "study thresholds --flagfile={run}/run.flags",
        "materialize --flagfile={run}/run.flags --examples_dir=x",
        "train --plugins other --flagfile={run}/split.flags",
    ],
)
def test_plugins_of_a_run_are_not_imported(
    command: str, evil: Path, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run")
    (run / "sweep.flags").write_text("--flagfile=inner.flags")
    (run / "split.flags").write_text("--flagfile=run.flags\n--epochs=1")
    for name in ("inner", "predict", "renamed"):
        (run / f"{name}.flags").write_text(FOREIGN)
    Path("mine.flags").write_text(f"--flagfile={run}/run.flags")
    name, *flags = command.format(run=run).split()
    before = sorted(tmp_path.rglob("*"))
    module = importlib.import_module(f"tfcomp.{name}")
    with pytest.raises(RunError, match=ASKED):
        module.main([name, *flags])
    assert not evil.exists() and sorted(tmp_path.rglob("*")) == before


def test_measuring_leaves_foreign_plugins_alone(
    evil: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    from tfcomp import measure

    run = write_run(tmp_path / "run")
    assert measure.main(["measure", f"--runs={run}"]) == 1
    assert re.search(ASKED, capsys.readouterr().err) and not evil.exists()


@pytest.mark.parametrize("line", ["\n--trust_flagfile", ""])
def test_a_run_cannot_trust_itself(
    line: str, evil: Path, tmp_path: Path
) -> None:
    from tfcomp import train

    run = write_run(tmp_path / "run", line)
    (run / "run.flags").write_text("evil_part\n--flagfile=smoke" + line)
    with pytest.raises((ConfigError, RunError)):
        train.main(["train", "--plugins", f"--flagfile={run}/run.flags"])
    assert not evil.exists()


@pytest.mark.parametrize("flag", [FOREIGN, "--trust_flagfile"])
@pytest.mark.parametrize("is_first", [True, False])
def test_plugins_that_are_asked_for_are_imported(
    flag: str, is_first: bool, evil: Path, tmp_path: Path
) -> None:
    from tfcomp import materialize

    run = write_run(tmp_path / "run")
    flags = [f"--flagfile={run}/run.flags", flag]
    flags = flags[:: -1 if is_first else 1]
    with pytest.raises(ConfigError, match="--examples_dir must name a folder"):
        materialize.main(["materialize", *flags])
    assert evil.exists()


@pytest.mark.parametrize("flag", [FOREIGN, "--trust_flagfile"])
def test_runs_that_are_trusted(flag: str, evil: Path, tmp_path: Path) -> None:
    from tfcomp import analyze

    run = write_run(tmp_path / "run")
    with pytest.raises(RunError, match="is damaged"):
        analyze.main(["analyze", f"--run={run}", flag])
    assert evil.exists()


def test_comparing_imports_no_plugins(evil: Path, tmp_path: Path) -> None:
    from tfcomp import compare

    run = write_run(tmp_path / "run")
    flags = [f"--runs={run}", "--scores=id/mse"]
    assert compare.main(["compare", *flags]) == 0
    assert not evil.exists()
