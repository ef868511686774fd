"""What a run draws while it is trained, and how much of it is kept."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.evaluation import kept_outputs
from tfcomp.evaluation.kept_outputs import read_outputs, write_outputs
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.models.config_checks import check_config
from tfcomp.training.experiment import train_and_evaluate

GRID = np.array([[0, 1], [2, 3]], np.float32)


def test_what_is_kept_is_read(tmp_path: Path, capsys) -> None:
    run = LoadedRun(tmp_path, None, None, None, {}, "")
    assert read_outputs(run, GRID) == {}
    images = np.random.default_rng(0).uniform(-0.1, 1.1, (2, 3, 4, 1))
    images[0, 0, 0] = np.nan
    for epoch in (10, 9):
        write_outputs(tmp_path, epoch, GRID, images * epoch / 10)
    found = read_outputs(run, GRID)
    assert list(found) == [9, 10]
    expected = np.nan_to_num(images).clip(0, 1)
    assert np.abs(found[10] - expected).max() <= 0.5 / 255 + 1e-6
    assert read_outputs(run, GRID + 1) == {}
    assert "has other combinations" in capsys.readouterr().err
    (tmp_path / "outputs" / "epoch_9.npz").write_bytes(b"PK damaged")
    assert list(read_outputs(run, GRID)) == [10]
    assert "epoch_9.npz is left out" in capsys.readouterr().err
    assert read_outputs(dataclasses.replace(run, path=None), GRID) == {}


@pytest.mark.timeout(60)
def test_files_of_others_are_left_out(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    """A pipe, a bomb, an encrypted archive, and images of another number."""
    run = LoadedRun(tmp_path, None, None, None, {}, "")
    sizes = (2, 3, 4), (2, 400, 400), (5, 3, 4), (2, 3, 4)
    for epoch, size in enumerate(sizes, 1):
        write_outputs(tmp_path, epoch, GRID, np.zeros((*size, 1)))
    encrypted = tmp_path / "outputs" / "epoch_4.npz"
    content = bytearray(encrypted.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    encrypted.write_bytes(content)
    os.mkfifo(tmp_path / "outputs" / "epoch_5.npz")
    monkeypatch.setattr(kept_outputs, "MAX_BYTES", 2**16)
    assert list(read_outputs(run, GRID)) == [1]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and all("left out" in line for line in lines)


def test_restarts_would_replace_outputs() -> None:
    flags = ["--flagfile=donut.flags", "--keep_outputs=2", "--id_target=0.1"]
    with pytest.raises(ConfigError, match="must be 0 beside --id_target"):
        check_config(parse_config(flags))


def test_a_run_keeps_what_it_draws(
    make_smoke: Callable[..., RunConfig],
) -> None:
    config = make_smoke("--epochs=4", "--keep_outputs=4", "--eval_every=0")
    train_and_evaluate(config)
    run = tfcomp.load_run(config.run_dir)
    kept = read_outputs(run.run, run.dataset.splits.grid)
    assert list(kept) == [1, 2, 3]
    truth = run.dataset.render_array(run.dataset.splits.grid)
    errors = [((images - truth) ** 2).mean() for images in kept.values()]
    errors.append(((run.draw().clip(0, 1) - truth) ** 2).mean())
    assert errors == sorted(errors, reverse=True) and errors[0] > errors[3]
