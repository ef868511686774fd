"""Sheets of held-out images, and the tables that lead to them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.evaluation.loading import load_run
from tfcomp.storage import published_folder
from tfcomp.studies.claims import read_some_evidence
from tfcomp.studies.claims.evidence import Run, read_run
from tfcomp.studies.decoders import command as decoders
from tfcomp.studies.decoders.image_sheets import (
    Network,
    choose_networks,
    choose_points,
    collect_images,
    find_networks,
    link,
    name_sheet,
)
from tfcomp.studies.decoders.split_facts import get_r2

ROOT = Path(__file__).parents[3]
SPRITES = "--flagfile=sprites.flags --grid_size=16 --sprite_sizes=3,3,4,8,8"


def make_run(model: str, seed: int, r2: float, grid_size: int = 16) -> Run:
    flags = {"model": model, "seed": seed, "grid_size": grid_size}
    return Run(Path(f"{model}_{seed}"), flags, {"r2": {"ood": r2}})


def load_nothing() -> None:
    raise AssertionError


def test_the_first_seed_of_the_latest_look_is_shown() -> None:
    runs = [
        make_run("cnn", 1, 0.9),
        make_run("cnn", 0, 0.2),
        make_run("acting", 211, 0.9),
        make_run("acting", 210, 0.1),
        make_run("acting", 200, 0.9),
        make_run("slots", 200, 0.3, grid_size=64),
        make_run("kim", 200, 0.15),
    ]
    chosen = choose_networks([Network(run, load_nothing) for run in runs])
    found = [(n.run.flags["model"], n.run.seed) for n in chosen]
    assert found == [("cnn", 0), ("kim", 200), ("acting", 210)]


@pytest.mark.parametrize(
    ("region", "kinds"),
    [
        ("wiedemer:diagonal:.4", {"certified": 4, "other": 4}),
        ("montero:extrapolation", {"other": 8}),
        ("x:#2,y:#2", {"certified": 8}),
        ("shape:#0,scale:#0,x:#0,y:#0", {"certified": 4}),
    ],
)
def test_held_out_combinations_of_both_kinds(
    region: str, kinds: dict[str, int]
) -> None:
    dataset = make_dataset(
        parse_config([*SPRITES.split(), f"--region={region}"])
    )
    points, titles = choose_points(dataset)
    assert {kind: titles.count(kind) for kind in kinds} == kinds
    assert len(points) == len(titles) == len(np.unique(points, axis=0))
    every = dataset.splits.all
    held_out = {tuple(row) for row in every.factors[every.is_ood].tolist()}
    assert held_out.issuperset(map(tuple, points.tolist()))
    marks = certify_dataset(dataset, points)[1].certified
    assert list(np.where(marks, "certified", "other")) == titles


def test_truth_is_above_what_the_network_draws(smoke_run: RunConfig) -> None:
    run = read_run(Path(smoke_run.run_dir))
    rows, titles = collect_images(find_networks([run]))
    loaded = load_run(smoke_run.run_dir)
    points, _ = choose_points(loaded.dataset)
    truth, drawn = rows.values()
    assert list(rows) == ["truth", f"cnn {run.get('r2/ood'):.2f}"]
    np.testing.assert_array_equal(truth, loaded.dataset.render_array(points))
    np.testing.assert_allclose(drawn, loaded.model(points), atol=1e-6)
    assert np.abs(truth - drawn).max() > 0.1 and len(titles) == len(truth)


def test_published_networks_of_the_same_data(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    every = read_some_evidence("docs/decoder_evidence/decoders_bumps*").runs
    runs = [run for run in every if run.flags["region"] == "corner:9"]
    networks = find_networks(runs)
    assert {n.run.flags["region"] for n in networks} == {"corner:9"}
    names = sorted(n.run.path.parent.name for n in networks)
    assert names == sorted({run.flags["model"] for run in runs})
    network = next(n for n in networks if n.run.flags["model"] == "cnn")
    assert network.load().config.model.model == "cnn"
    (same,) = [r for r in runs if r.seed == 0 and r.flags["model"] == "cnn"]
    r2 = [get_r2(run, "ood") for run in (network.run, same)]
    assert r2[0] == pytest.approx(r2[1], abs=1e-3)
    # Of a decoder that did not run there, too, and of no other data.
    elsewhere = replace(runs[0], flags=runs[0].flags | {"data_dir": "there"})
    again = [n.run for n in find_networks([elsewhere])]
    assert again == [n.run for n in networks]
    other = [replace(r, flags=r.flags | {"sigma": 0.7}) for r in runs]
    assert not find_networks(other)
    monkeypatch.setattr(published_folder, "find_source", _refuse)
    assert not find_networks(runs)


def _refuse() -> str:
    raise RunError("no published models")


def test_tables_lead_to_sheets_that_are_there(
    smoke_run: RunConfig, tmp_path: Path
) -> None:
    flags = ["decoders", f"--runs={smoke_run.run_dir}"]
    for more, is_drawn in ([], False), (["--sheets"], True):
        output = tmp_path / f"{is_drawn}"
        assert decoders.main([*flags, f"--output={output}", *more]) == 0
        (sheet, *others) = output.rglob("sheets/*") if is_drawn else [None]
        text = (output / "decoders.md").read_text("utf-8")
        assert not others and ("](sheets/" in text) == is_drawn
        if sheet:
            assert sheet.read_bytes()[:4] == b"\x89PNG"
            assert sheet.stat().st_size < 100_000
            assert f"](sheets/{sheet.name})" in text


def test_a_link_needs_its_sheet(tmp_path: Path) -> None:
    long, short = "sprites x:#2&not:shape:#0,x:#4-7", "sprites x:#2 completed"
    assert name_sheet(long) == name_sheet(short) == "sprites_x_2_completed.png"
    assert name_sheet("sprites x:#2") != name_sheet(short)
    assert link("a", short, tmp_path) == "a"
    (tmp_path / "sheets").mkdir()
    (tmp_path / "sheets" / name_sheet(long)).touch()
    assert link("a", short, tmp_path) == "[a](sheets/sprites_x_2_completed.png)"
