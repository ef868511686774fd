"""Figures of the paper: what each needs, what is missing, what is drawn."""

import json
from pathlib import Path

import pytest
from PIL import Image

from reproduction.claims import Evidence, read_evidence
from reproduction.figures import command, network_pictures, score_pictures
from reproduction.figures.network_pictures import EACH, draw_each
from reproduction.figures.paper_figure import (
    PaperFigure,
    make_command,
    read_figures,
)
from reproduction.figures.score_pictures import DATA, STAGES
from tests.reproduction.claims.worlds import plant_run
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.tables.read import Results

FIGURES = read_figures()
ROOT = Path(__file__).parents[3]
EVIDENCE = read_evidence([str(ROOT / "reproduction" / "evidence")])
NAMES = """
    1a 1b 1c 1d 1e 2a-d 2e 2f 3a 3bc 3d 3e 4a 4b 4c 4d 4e 4f 5 6 7a 7b 8 9a 9b
    9cd 10 11 12 13 14 15 N H symptoms cures
"""


def write(
    folder: Path, evidence: Evidence, *names: str
) -> tuple[list[PaperFigure], str]:
    """The figures of some names, and the text of their index."""
    settings = {"output": folder, "format": "png"}
    figures = [FIGURES[name] for name in names]
    entries = command.write_figures(figures, evidence, settings)
    return entries, (folder / "index.md").read_text("utf-8")


def test_every_figure_of_the_paper_is_declared() -> None:
    assert list(FIGURES) == NAMES.split()
    known = {"each": EACH, "data": DATA, "stages": STAGES}
    for figure in FIGURES.values():
        for picture in figure.pictures:
            kind, argument = next(iter(picture.items()))
            assert kind in score_pictures.DRAWERS | network_pictures.DRAWERS
            assert argument in known.get(kind, [argument])


def test_commands_make_what_is_missing() -> None:
    needs = [n for figure in FIGURES.values() for n in figure.needs.values()]
    for need in needs:
        words = make_command(need).split()
        assert words[:2] == ["tfcomp", "sweep"]
        assert words[-3:] == ["--first_seed=100", "--seeds=5", "--measure"]
        config = parse_config([*words[2:-3], "--seed=100"])
        run = plant_run(config.to_flags(), 100, {})
        group = need.find(Evidence(Results([run])).groups)
        assert group.runs and group.differences == ()


@pytest.mark.parametrize(
    ("name", "count"), [("3e", 1), ("4c", 2), ("13", 3), ("N", 1)]
)
def test_scores_are_drawn_without_networks(
    name: str, count: int, tmp_path: Path
) -> None:
    (entry,), text = write(tmp_path, EVIDENCE, name)
    assert len(entry.files) == count
    for file in entry.files.values():
        with Image.open(tmp_path / file) as image:
            assert max(image.size) > 700  # 200 dots an inch
    assert FIGURES[name].shows in text
    assert ("Missing" in text) is (name == "13")  # its maps need networks


def test_what_is_missing_is_listed(tmp_path: Path) -> None:
    entries, text = write(tmp_path, Evidence(), "1b", "4c", "5")
    assert "python -m reproduction.thresholds threshold" in text
    assert make_command(FIGURES["1b"].needs["bump"]) in text
    assert [str(entry) for entry in entries] == [
        "0 drawn, missing: bump",
        "0 drawn, missing: the threshold study",
        "a scheme, not drawn",
    ]


def test_unfitted_networks_are_left_out_and_counted(tmp_path: Path) -> None:
    (label,) = FIGURES["1e"].needs
    errors = {100: 0.9, 101: 0.01, 102: 0.02}
    flags = parse_config(["--flagfile=donut.flags"]).to_flags()
    runs = [
        plant_run(flags, seed, {"id/relative_mse": error})
        for seed, error in errors.items()
    ]
    (found,), index = write(tmp_path, Evidence(Results(runs)), "1e")
    assert found.groups[label].seeds == [101, 102]
    assert "seeds 101, 102 (1 not fitted)" in index
    drawn = score_pictures.draw_scores(found, ["id/relative_mse"])
    ((caption, figure),) = drawn.items()  # as `plot_paper` shows them
    assert caption.startswith("All seeds that fit ID (where none does, all)")
    assert figure.data["value"].tolist()[:2] == [0.01, 0.02]
    # Where none is fitted, all are shown.
    found = FIGURES["1e"].find(Evidence(Results(runs[:1])))
    assert found.groups[label].seeds == [100]
    assert found.unfitted[label] == 1


def test_networks_and_data(smoke_run: RunConfig, tmp_path, capsys) -> None:
    flags = [f"--runs={smoke_run.run_dir}", f"--output={tmp_path}"]
    assert command.main(["", *flags, "--only=1b,4a,7b"]) == 0
    printed = capsys.readouterr().out.splitlines()
    counts = [int(line.split()[1]) for line in printed if " drawn" in line]
    assert counts == [2, 1, 0]
    text = (tmp_path / "index.md").read_text("utf-8")
    assert "not as published: region=square:4-8" in text
    files = [path.name for path in tmp_path.glob("*.png")]
    assert len(files) == sum(counts) and all(name in text for name in files)
    found = FIGURES["1b"].find(read_evidence([smoke_run.run_dir]))
    for name in EACH.keys() - {"manifold", "errors", "grams"}:
        drawn = draw_each(found, name)
        has_none = name in ("embeddings", "profiles", "gap")  # of other models
        assert bool(drawn) is not has_none
        assert all(caption.startswith("bump. ") for caption in drawn)


def test_a_damaged_network_stops_nothing(tmp_path: Path) -> None:
    flags = parse_config(["--flagfile=donut.flags", "--seed=100"]).to_flags()
    lines = [f"--{k}={str(v).lower()}" for k, v in flags.items()]
    (tmp_path / "run.flags").write_text("\n".join(lines))
    (tmp_path / "metrics.json").write_text(
        json.dumps({"id": {"mse": 0.1, "relative_mse": 0.01}})
    )
    (tmp_path / "model.keras").write_text("no model")
    given = [f"--runs={tmp_path}", f"--output={tmp_path / 'figures'}"]
    assert command.main(["", *given, "--only=1c,1e"]) == 0
    text = (tmp_path / "figures" / "index.md").read_text("utf-8")
    assert "model.keras is damaged" in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--only=1z"], "--only must name figures"),
        (["--only=1a", "--format=svg"], "--format must be among png, pdf"),
        (["--only=1a", "--width=a4"], "width must be among column, page"),
        (["--output="], "--output must name a folder"),
        (["--runs=nowhere"], "--runs must match a folder"),
    ],
)
def test_mistakes(flags, words, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=words):
        command.main(["", *flags])
    assert list(tmp_path.iterdir()) == []
