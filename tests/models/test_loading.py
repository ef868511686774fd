"""Loading runs and their kept outputs: a fault is one clear line."""

import errno
import json
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import keras
import numpy as np
import pytest

from tfcomp import export
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.figures import image_files
from tfcomp.figures.image_files import read_outputs, write_outputs
from tfcomp.models.loading import hash_weights, load_run, open_model
from tfcomp.models.registry import make_checked_dataset
from tfcomp.storage import run_folder
from tfcomp.storage.run_folder import is_finished, read_config


@pytest.fixture
def run_copy(smoke_run, tmp_path) -> Path:
    return Path(shutil.copytree(smoke_run.run_dir, tmp_path / "smoke"))


def change_model(file: Path, change: Callable[[dict], None]):
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("name", ["metrics.json", "model.keras"])
def test_missing_and_damaged_files(run_copy, name):
    file = run_copy / name
    file.write_bytes(b"{")
    with pytest.raises(RunError, match=f"{name} is damaged .*--resume"):
        load_run(run_copy)

    file.unlink()
    with pytest.raises(RunError, match=f"has no {name}"):
        read_config(run_copy)
    assert not is_finished(run_copy)


def test_folders_without_a_run(tmp_path):
    with pytest.raises(RunError, match="exist"):
        read_config(tmp_path / "no")
    with pytest.raises(RunError, match="run.flags"):
        read_config(tmp_path)


@pytest.mark.parametrize("flag", ["--color=red", "--depth=0"])
def test_flags_of_another_version(flag, run_copy):
    file = run_copy / "run.flags"
    lines = file.read_text().splitlines()[1:-1]  # without checksums
    file.write_text("\n".join([*lines, flag]))

    with pytest.raises(RunError, match="version"):
        read_config(run_copy)


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda weight: weight + 1e-4, "not the model that metrics.json"),
        (lambda weight: weight * np.nan, "not finite"),
    ],
)
def test_a_model_that_does_not_belong_to_the_scores(change, word, run_copy):
    """The report had other errors than metrics.json, and NaN was exported."""
    file = run_copy / "model.keras"
    model = load_run(run_copy).model
    model.set_weights([change(weight) for weight in model.get_weights()])
    model.save(file)

    with pytest.raises(RunError, match=f"{word}.*remove this file"):
        export.main(["export", f"--run={run_copy}", f"--output={run_copy}/x"])
    assert not (run_copy / "x").exists()

    metrics = json.loads((run_copy / "metrics.json").read_text())
    del metrics["weights_hash"]  # as runs of earlier versions
    (run_copy / "metrics.json").write_text(json.dumps(metrics))
    if "finite" in word:
        with pytest.raises(RunError, match=word):
            load_run(run_copy)
    else:
        load_run(run_copy)


def test_the_hash_knows_no_order_of_weights(rng):
    arrays = [rng.normal(size=(2, 3)), rng.normal(size=3)]
    hashes = []
    for weights in (arrays, arrays[::-1], [arrays[0].T, arrays[1]]):
        model = Mock()
        model.get_weights.return_value = weights
        hashes.append(hash_weights(model))
    assert hashes[0] == hashes[1] != hashes[2]


def test_data_that_are_elsewhere(run_copy, monkeypatch):
    file = run_copy / "run.flags"
    text = file.read_text().replace("=gaussian_bumps", "=table")
    text = text.replace("--data=\n", "--data=own.npz\n")
    text = text.replace("--data_hash=\n", "--data_hash=0123456789abcdef\n")
    file.write_text(text)
    with pytest.raises(RunError, match=f"own.npz.*--data in {file}"):
        load_run(run_copy)


def test_a_full_disk_is_no_damage(run_copy, monkeypatch):
    def refuse(*_: object):
        raise OSError(errno.ENOSPC, "full", "a/x")

    monkeypatch.setattr(keras.models, "load_model", refuse)
    with pytest.raises(OSError, match="a/x"):
        load_run(run_copy)


def test_a_moved_run_is_repaired_where_it_lies(run_copy, tmp_path):
    """Before, the advice trained another run, elsewhere."""
    (run_copy / "model.keras").write_bytes(b"{")
    moved = shutil.move(run_copy, tmp_path / "some where")

    with pytest.raises(RunError) as caught:
        load_run(moved)

    advice = str(caught.value).partition("tfcomp train ")[2]
    config = parse_config(shlex.split(advice))
    assert config.run_dir == str(moved)
    assert config.resume


@pytest.mark.parametrize("member", ["config.json", "x"])
@pytest.mark.parametrize(
    "load",
    [
        lambda file: load_run(file.parent),
        lambda file: open_model(file, []),
    ],
)
def test_a_model_that_would_fill_the_memory(
    member, load, run_copy, monkeypatch
):
    """Keras would read gigabytes of zeros for minutes without a word."""
    monkeypatch.setattr(run_folder, "count_memory", lambda: 4 << 20)
    file = run_copy / "model.keras"
    zeros = {member: bytes(5 << 20)}
    change_model(file, lambda parts: parts.update(zeros))

    with pytest.raises(RunError, match="5 MB"):
        load(file)


MARSHALED = {
    "class_name": "__lambda__",
    "config": {"code": "4wAA", "defaults": None},
}


@pytest.mark.parametrize(
    "module, name, config, word",
    [
        ("evil_part", "Evil", {}, "damaged"),
        ("builtins", "exec", {}, "damaged"),
        ("keras.layers", "Lambda", {"function": MARSHALED}, "Lambda"),
    ],
)
def test_hostile_model_runs_no_code(module, name, config, word, run_copy, evil):

    def replace_layer(parts: dict):
        model = json.loads(parts["config.json"])
        layer = model["config"]["layers"][2]
        layer["module"] = module
        layer["class_name"] = name
        layer["registered_name"] = name
        if config:
            layer["config"] = {"name": "stage_0", **config}
        parts["config.json"] = json.dumps(model)

    change_model(run_copy / "model.keras", replace_layer)

    with pytest.raises(RunError, match=word):
        load_run(run_copy)
    assert not evil.exists()
    assert "evil_part" not in sys.modules


GRID = np.array([[0, 1], [2, 3]], np.float32)


def test_what_is_kept_is_read(tmp_path, rng):
    assert read_outputs(tmp_path, GRID) == {}
    images = rng.uniform(-0.1, 1.1, (2, 3, 4, 1))
    images[0, 0, 0] = np.nan

    for epoch in (10, 9):
        errors = np.array([epoch, np.nan])
        write_outputs(tmp_path, epoch, GRID, images * epoch / 10, errors)
    outputs = read_outputs(tmp_path, GRID)

    assert list(outputs) == [9, 10]
    read_images, read_errors = outputs[10]
    expected = np.nan_to_num(images).clip(0, 1)
    assert np.abs(read_images - expected).max() <= 0.5 / 255 + 1e-6
    np.testing.assert_array_equal(read_errors, [10, np.nan])

    pixels = np.zeros((2, 3, 4, 1), np.uint8)  # as earlier versions wrote them
    np.savez(
        tmp_path / "outputs/epoch_9.npz",
        factors=GRID,
        images=pixels,
    )
    assert np.isnan(read_outputs(tmp_path, GRID)[9][1]).all()


@pytest.mark.timeout(60)
def test_files_that_do_not_fit_are_left_out(tmp_path, capsys, monkeypatch):
    """A bomb, images of another number, an encrypted and a damaged file."""
    sizes = [
        (2, 3, 4),
        (2, 400, 400),
        (5, 3, 4),
        (2, 3, 4),
    ]
    for epoch, size in enumerate(sizes, 1):
        images = np.zeros((*size, 1))
        write_outputs(tmp_path, epoch, GRID, images, np.zeros(2))
    folder = tmp_path / "outputs"
    encrypted = folder / "epoch_4.npz"
    content = bytearray(encrypted.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    encrypted.write_bytes(content)
    (folder / "epoch_5.npz").write_bytes(b"PK damaged")
    monkeypatch.setattr(image_files, "MAX_BYTES", 2**16)

    assert list(read_outputs(tmp_path, GRID)) == [1]

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all("left out" in line for line in lines)
    assert read_outputs(tmp_path, GRID + 1) == {}
    assert "other combinations" in capsys.readouterr().err


def test_restarts_would_replace_outputs():
    flags = ["--flagfile=donut.flags", "--keep_outputs=2", "--id_target=0.1"]
    with pytest.raises(ConfigError, match="id_target"):
        make_checked_dataset(parse_config(flags))
