"""Published models in folders, and the command that lists and packs them."""

import json
from pathlib import Path

import pytest

import tfcomp
from tfcomp import published
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import format_flags, parse_config
from tfcomp.storage import published_folder
from tfcomp.storage.published_folder import FILES, SUMS_FILE, read_model

NAMES = ["bumps/cnn/square", "bumps/mlp/square", "sprites/cnn/range"]
METRICS = {
    "id": {"relative_mse": 0.25},
    "ood": {"relative_mse": None},
    "train": {"weights": 1234},
    "r2": {"ood": 0.5},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files that say nothing of a network, where they are found."""
    folder = tmp_path / "saved_models" / "published"
    for name in NAMES:
        model = folder / name
        model.mkdir(parents=True)
        files = {file: f"{name} {file}".encode() for file in FILES}
        files["metrics.json"] = json.dumps(METRICS).encode()
        files[SUMS_FILE] = published_folder.format_sums(files).encode()
        for file, content in files.items():
            (model / file).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return folder


def test_models_are_found_by_name(folder: Path) -> None:
    source = str(folder)
    assert tfcomp.list_published(source) == NAMES
    with pytest.raises(RunError, match="did you mean bumps/cnn/square"):
        read_model(source, "bumps/cnn/sqare")


def test_a_folder_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(published_folder, "CLONE", tmp_path / "site-packages")
    with pytest.raises(RunError, match="--source"):
        tfcomp.list_published()
    with pytest.raises(RunError, match="no published models in"):
        tfcomp.list_published(str(tmp_path))
    with pytest.raises(RunError, match="no published models in"):
        read_model(str(tmp_path / "new"), "a")


def test_files_that_are_too_large_or_none(folder: Path) -> None:
    sums = folder / NAMES[0] / SUMS_FILE
    sums.write_bytes(b" " * 5000)
    with pytest.raises(RunError, match="too large"):
        read_model(str(folder), NAMES[0])
    sums.unlink()
    sums.mkdir()
    with pytest.raises(RunError, match="is not a file"):
        read_model(str(folder), NAMES[0])


@pytest.mark.parametrize(
    ("words", "found"), [("", "012"), ("cnn", "02"), ("/square mlp", "1")]
)
def test_the_command_lists(
    folder: Path, capsys: pytest.CaptureFixture, words: str, found: str
) -> None:
    assert published.main(["published", *words.split()]) == 0
    _, *rows, total, _ = capsys.readouterr().out.splitlines()
    names = [NAMES[int(i)] for i in found]
    numbers = "1,234 0.25 - 0.500".split()
    for row, name in zip(rows, names, strict=True):
        first, weights, _, *scores = row.split()  # kB are left out
        assert [first, weights, *scores] == [name, *numbers]
    files = [path for name in names for path in (folder / name).iterdir()]
    size = sum(path.stat().st_size for path in files) / 1e6
    assert total.startswith(f"{len(names)} models, {size:.1f} MB in")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["nothing"], "--search must be part of names"),
        (["--name=a"], "--name must come with --pack"),
        (["--pack=run", "--name=a", "--source=b"], "--source is where"),
        (["--pack=run", "--name=../a"], "--name must be words"),
        (["--pack=run", "--name=a", "--output=/dev/null"], "--output must"),
    ],
)
def test_bad_flags(folder: Path, flags: list[str], words: str) -> None:
    Path("run").mkdir()
    config = parse_config(["--flagfile=smoke.flags"])
    Path("run/run.flags").write_text(format_flags(config))
    for file in ("metrics.json", "model.keras"):
        Path("run", file).touch()
    with pytest.raises(ConfigError, match=words):
        published.main(["published", *flags])


def test_folders_that_hold_no_model_are_not_listed(folder: Path) -> None:
    for name in (".partial-1", "a\x1b[2J"):
        (folder / name).mkdir()
        (folder / name / SUMS_FILE).write_text("")
    assert tfcomp.list_published(str(folder)) == NAMES


@pytest.mark.parametrize(
    "metrics",
    ["[]", '{"id": {"relative_mse": "x"}}', '{"id": {}, "r2": {"ood": "x"}}'],
)
def test_scores_that_are_none(folder: Path, metrics: str) -> None:
    (folder / NAMES[0] / "metrics.json").write_text(metrics)
    with pytest.raises(RunError, match=r"metrics.json is damaged"):
        tfcomp.list_published(str(folder))
