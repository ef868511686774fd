"""Loading runs and their kept outputs: a fault is one clear line."""

import errno
import json
import os
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.figures import image_files
from tfcomp.figures.image_files import read_outputs, write_outputs
from tfcomp.models.loading import load_run
from tfcomp.models.open_models import _load
from tfcomp.models.registry import check_config
from tfcomp.storage import run_folder
from tfcomp.storage.run_folder import check_run, is_finished
from tfcomp.training.experiment import train_and_evaluate


@pytest.fixture
def copy(smoke_run, tmp_path) -> Path:
    return Path(shutil.copytree(smoke_run.run_dir, tmp_path / "smoke"))


def change_model(file: Path, change: Callable[[dict], None]) -> None:
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("name", ["metrics.json", "model.keras"])
def test_missing_and_damaged_files(copy, name) -> None:
    (copy / name).write_bytes(b"{")
    rule = f"--run=.*{name} is damaged .*: repair it with .* --resume"
    with pytest.raises(RunError, match=rule):
        load_run(copy)
    (copy / name).unlink()
    with pytest.raises(RunError, match=f"has no {name}: go on with"):
        check_run(copy)
    assert not is_finished(copy)


def test_folders_without_a_run_and_of_another_version(copy, tmp_path) -> None:
    with pytest.raises(RunError, match="does not exist"):
        check_run(tmp_path / "no")
    with pytest.raises(RunError, match="has no run.flags"):
        check_run(tmp_path)
    file = copy / "run.flags"
    lines = file.read_text().splitlines()[1:-1]  # without checksums
    for line in ("--color=red", "--depth=0"):
        file.write_text("\n".join([*lines, line]))
        with pytest.raises(RunError, match="another version"):
            check_run(copy)


def test_a_full_disk_is_no_damage(copy, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a/x")

    monkeypatch.setattr(keras.models, "load_model", refuse)
    with pytest.raises(OSError, match="No space left on device: 'a/x'"):
        load_run(copy)


def test_a_moved_run_is_repaired_where_it_lies(copy, tmp_path) -> None:
    """Before, the advice trained another run, elsewhere."""
    (copy / "model.keras").write_bytes(b"{")
    moved = shutil.move(copy, tmp_path / "some where")
    with pytest.raises(RunError, match="repair it with") as caught:
        load_run(moved)
    advice = str(caught.value).partition("tfcomp train ")[2]
    named = parse_config(shlex.split(advice))
    assert named.run_dir == str(moved) and named.resume


def test_a_model_that_would_fill_the_memory(copy, monkeypatch) -> None:
    """Keras would read gigabytes of zeros for minutes without a word."""
    monkeypatch.setattr(run_folder, "count_memory", lambda: 40 << 20)
    file = copy / "model.keras"
    content = file.read_bytes()
    for member in ("config.json", "model.weights.h5", "x"):
        file.write_bytes(content)
        zeros = {member: bytes(50 << 20)}
        change_model(file, lambda parts, zeros=zeros: parts.update(zeros))
        with pytest.raises(RunError, match="unpacks to 50 MB"):
            load_run(copy)
        with pytest.raises(RunError, match="unpacks to 50 MB"):
            _load(file)


@pytest.mark.parametrize(
    "layer",
    [
        {"module": "evil_part", "class_name": "Evil", "registered_name": "E>E"},
        {"module": "builtins", "class_name": "exec", "registered_name": "exec"},
        {
            "module": "keras.layers",
            "class_name": "Lambda",
            "config": {
                "name": "stage_0",
                "function": {
                    "class_name": "__lambda__",
                    "config": {"code": "4wAA", "defaults": None},
                },
            },
        },
    ],
)
def test_hostile_model_runs_no_code(layer, copy, tmp_path, monkeypatch) -> None:
    mark, file = tmp_path / "mark", copy / "model.keras"
    code = f"from pathlib import Path\nPath({str(mark)!r}).touch()\n"
    (tmp_path / "evil_part.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)

    def replace_layer(parts: dict) -> None:
        config = json.loads(parts["config.json"])
        config["config"]["layers"][2] |= layer
        parts["config.json"] = json.dumps(config)

    change_model(file, replace_layer)
    is_lambda = layer["class_name"] == "Lambda"
    rule = "would run code .Lambda., which is refused$" if is_lambda else ""
    with pytest.raises(RunError, match=rule or "is damaged"):
        load_run(copy)
    assert not mark.exists() and "evil_part" not in sys.modules


GRID = np.array([[0, 1], [2, 3]], np.float32)


def test_what_is_kept_is_read(tmp_path, capsys) -> None:
    assert read_outputs(tmp_path, GRID) == {}
    images = np.random.default_rng(0).uniform(-0.1, 1.1, (2, 3, 4, 1))
    images[0, 0, 0] = np.nan
    for epoch in (10, 9):
        errors = np.array([epoch, np.nan])
        write_outputs(tmp_path, epoch, GRID, images * epoch / 10, errors)
    found = read_outputs(tmp_path, GRID)
    assert list(found) == [9, 10]
    expected = np.nan_to_num(images).clip(0, 1)
    assert np.abs(found[10][0] - expected).max() <= 0.5 / 255 + 1e-6
    np.testing.assert_array_equal(found[10][1], [10, np.nan])
    pixels = np.zeros((2, 3, 4, 1), np.uint8)  # as earlier versions wrote them
    np.savez(tmp_path / "outputs/epoch_9.npz", factors=GRID, images=pixels)
    assert np.isnan(read_outputs(tmp_path, GRID)[9][1]).all()
    assert read_outputs(tmp_path, GRID + 1) == {}
    assert "has other combinations" in capsys.readouterr().err
    (tmp_path / "outputs" / "epoch_9.npz").write_bytes(b"PK damaged")
    assert list(read_outputs(tmp_path, GRID)) == [10]
    assert "epoch_9.npz is left out" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_files_of_others_are_left_out(tmp_path, capsys, monkeypatch) -> None:
    """A bomb, an encrypted archive, and images of another number."""
    sizes = (2, 3, 4), (2, 400, 400), (5, 3, 4), (2, 3, 4)
    for epoch, size in enumerate(sizes, 1):
        zeros = np.zeros((*size, 1))
        write_outputs(tmp_path, epoch, GRID, zeros, zeros[:2, 0, 0, 0])
    encrypted = tmp_path / "outputs" / "epoch_4.npz"
    content = bytearray(encrypted.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    encrypted.write_bytes(content)
    monkeypatch.setattr(image_files, "MAX_BYTES", 2**16)
    assert list(read_outputs(tmp_path, GRID)) == [1]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all("left out" in line for line in lines)


def test_restarts_would_replace_outputs() -> None:
    flags = ["--flagfile=donut.flags", "--keep_outputs=2", "--id_target=0.1"]
    with pytest.raises(ConfigError, match="must be 0 beside --id_target"):
        check_config(parse_config(flags))


@pytest.mark.slow
def test_a_run_keeps_what_it_draws(
    make_smoke,
) -> None:
    config = make_smoke("--epochs=4", "--keep_outputs=4", "--eval_every=0")
    train_and_evaluate(config)
    run = tfcomp.load_run(config.run_dir)
    kept = read_outputs(run.run.path, run.dataset.splits.grid)
    assert list(kept) == [1, 2, 3]
    truth = run.dataset.render_array(run.dataset.splits.grid)
    errors = [((images - truth) ** 2).mean() for images, _ in kept.values()]
    errors.append(((run.draw().clip(0, 1) - truth) ** 2).mean())
    assert errors == sorted(errors, reverse=True) and errors[0] > errors[3]
