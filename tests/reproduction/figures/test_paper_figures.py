"""Figures of the paper: what each needs, what is missing, what is drawn."""

import json
from pathlib import Path
from unittest.mock import patch

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from reproduction.claims import Evidence, read_evidence
from reproduction.figures import command, network_pictures
from reproduction.figures.data_pictures import draw_training
from reproduction.figures.network_pictures import EACH, draw_each
from reproduction.figures.paper_figure import (
    FigureRuns,
    PaperFigure,
    read_figures,
)
from reproduction.figures.score_pictures import STAGES
from tests.reproduction.claims.worlds import plant_run
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import format_flags, parse_config
from tfcomp.figures.exhibits import use_own_style
from tfcomp.tables.read import Results

pytestmark = pytest.mark.usefixtures("untraced")

FIGURES = read_figures()
ROOT = Path(__file__).parents[3]
PINNED = (ROOT / "constraints.txt").read_text("utf-8").split()
NAMES = """
    1a 1b 1c 1d 1e 2a-d 2e 2f 3a 3bc 3d 3e 4a 4b 4c 4d 4e 4f 5 6 7a 7b 8 9a 9b
    9cd 10 11 12 13 14 15 H symptoms cures
"""


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return read_evidence([str(ROOT / "reproduction" / "evidence")])


def test_every_figure_of_the_paper_is_declared():
    assert list(FIGURES) == NAMES.split()
    claims = ["symptoms", "cures"]
    arguments = {"each": EACH, "stages": STAGES, "claims": claims}
    for figure in FIGURES.values():
        for picture in figure.pictures:
            kind, argument = next(iter(picture.items()))
            assert kind in command.DRAWERS
            assert argument in arguments.get(kind, [argument])


def list_pictures(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.png"))


def test_scores_are_drawn_without_networks(
    tmp_path: Path,
    evidence: Evidence,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(command, "DPI", 50)
    figures = [FIGURES["3e"], FIGURES["13"]]

    command.write_figures(figures, evidence, tmp_path)

    names = list_pictures(tmp_path)
    text = (tmp_path / "index.md").read_text("utf-8")
    numbers = ["13_1", "13_2", "13_3", "3e_1"]
    assert names == [f"fig_{number}.png" for number in numbers]
    for part in (*names, *[figure.shows for figure in figures]):
        assert part in text


def read_picture(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"), float)


@pytest.mark.skipif(
    f"matplotlib=={matplotlib.__version__}" not in PINNED,
    reason="other versions of matplotlib move text",
)
@pytest.mark.parametrize("name", ["4c", "symptoms", "cures"])
def test_pages_show_what_the_command_draws(
    name: str,
    tmp_path: Path,
    evidence: Evidence,
):
    with use_own_style():
        command.write_figures([FIGURES[name]], evidence, tmp_path)

    file = f"fig_{name}_1.png"
    picture = read_picture(tmp_path / file)
    published = read_picture(ROOT / "docs" / "figures" / file)
    # Another processor may round a pixel otherwise.
    assert np.abs(picture - published).mean() < 0.5


def test_every_need_is_met_by_the_evidence(evidence: Evidence):
    for figure in FIGURES.values():
        groups = FigureRuns(figure, evidence).groups

        assert groups.keys() == figure.needs.keys()
        for networks in groups.values():
            assert networks.runs["setting"].nunique() == 1


def test_unfitted_networks_are_left_out():
    flags = parse_config(["--flagfile=donut.flags"]).to_flags()
    runs = []
    for seed, error in {100: 0.9, 101: 0.01, 102: 0.02}.items():
        runs.append(plant_run(flags, seed, {"id/relative_mse": error}))
    # A setting with fewer runs is not mixed with the others.
    runs.append(plant_run(flags | {"batch_size": 8}, 103, {}))

    seeds = []
    for evidence in (Evidence(Results(runs)), Evidence(Results(runs[:1]))):
        groups = FigureRuns(FIGURES["1e"], evidence).groups
        seeds.append(groups["bump code"].runs["seed"].tolist())

    # Where none is fitted, all are used.
    assert seeds == [[101, 102], [100]]


def test_nothing_is_drawn_without_runs(tmp_path: Path):
    command.write_figures([FIGURES["10"]], Evidence(), tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["index.md"]
    text = (tmp_path / "index.md").read_text("utf-8")
    for label in FIGURES["10"].needs:
        assert label in text


@pytest.mark.parametrize(
    "name, networks",
    [
        ("1d", {"bump code": "donut", "ramp code": "ramp"}),
        ("3d", {"corner, both penalties": "low_rank"}),
        ("4b", {"0 bumps": "stripes", "50 bumps": "stripes_and_bumps"}),
        ("9a", {"rotated digit": "rotated_mnist"}),
        ("10", {}),
    ],
)
def test_published_networks_stand_in_for_packed_runs(
    name: str,
    networks: dict,
    evidence: Evidence,
):
    folders = FigureRuns(FIGURES[name], evidence).folders

    names = {label: folder.name for label, folder in folders.items()}
    assert names == networks


def test_training_images_need_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(command, "DPI", 50)
    command.write_figures([FIGURES["4a"]], Evidence(), tmp_path)
    runs = FigureRuns(FIGURES["7a"], Evidence())
    (caption,) = draw_training(runs, "stripes", 16)

    assert list_pictures(tmp_path) == ["fig_4a_1.png"]
    assert "8 of 56" in (tmp_path / "index.md").read_text("utf-8")
    assert caption.startswith("16 of 56")
    assert FIGURES["7a"].pictures == [{"training": "stripes", "count": 56}]


def test_seeds_and_networks_are_listed(evidence: Evidence):
    scores = command.describe_sources(FigureRuns(FIGURES["3e"], evidence))
    (network,) = command.describe_sources(FigureRuns(FIGURES["1b"], evidence))

    assert len(scores) == len(FIGURES["3e"].needs)
    assert "200, 201, 202" in scores[0]
    assert "paper/donut" in network


def test_pictures_of_a_network(
    smoke_run: RunConfig,
    monkeypatch: pytest.MonkeyPatch,
):
    # Panels take longest.
    monkeypatch.setattr("tfcomp.figures.pictures.SHOWN_SAMPLES", 2)
    monkeypatch.setattr("tfcomp.metrics.run_analysis.SHOWN_UNITS", 1)
    # Its flags select the run, whatever they are.
    flags = {"dataset": smoke_run.data.dataset}
    figure = PaperFigure("0", "A run.", needs={"bump": flags})
    runs = FigureRuns(figure, read_evidence([smoke_run.run_dir]))
    of_other_models = {"embeddings", "profiles", "gap", "error curve"}
    # Smoke's network has fewer stages.
    left_out = {"manifold", "grams", "units", "units of stages 0 and 3"}

    for name in EACH.keys() - left_out:
        captions = draw_each(runs, name)

        assert (not captions) == (name in of_other_models)
        for caption in captions:
            assert caption.startswith("bump. ")
    assert len(network_pictures.draw_outputs(runs, "bump")) == 1
    # Of all hidden stages.
    with patch.object(network_pictures, "picture_maps", return_value=Figure()):
        assert len(draw_each(runs, "units")) == 3


def test_a_damaged_network_stops_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
):
    config = parse_config(["--flagfile=donut.flags", "--seed=100"])
    metrics = {"id": {"mse": 0.1, "relative_mse": 0.01}}
    (tmp_path / "run.flags").write_text(format_flags(config))
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "model.keras").write_text("no model")
    output = tmp_path / "figures"

    flags = [f"--runs={tmp_path}", f"--output={output}", "--only=1e"]
    assert command.main(["", *flags]) == 0

    assert "model.keras" in capsys.readouterr().err
    assert (output / "index.md").exists()


@pytest.mark.parametrize("flag", ["--only=1z", "--output=", "--runs=nowhere"])
def test_mistakes(flag: str, working_folder: Path):
    with pytest.raises(ConfigError):
        command.main(["", flag])

    assert list(working_folder.iterdir()) == []
