"""Figures of the paper: what each needs, what is missing, what is drawn."""

import dataclasses
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
from tests.reproduction.claims.planted import (
    Planted,
    Run,
    gather,
    make_run,
    make_study,
)
from tfcomp.config.errors import ConfigError
from tfcomp.config.flagfiles import SHIPPED, SUFFIX
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config

FIGURES = read_figures()
NAMES = """
    1a 1b 1c 1d 1e 2a-d 2e 2f 3a 3bc 3d 3e 4a 4b 4c 4d 4e 4f 5 6 7a 7b 8 9a 9b
    9cd 10 11 12 13 14 15 N H
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
        group = need.find(gather([Run(config.to_flags())]).groups)
        assert group.runs and group.differences == ()


def plant(name: str) -> Evidence:
    """Runs of all that a figure needs, at three seeds, without networks."""
    runs = [
        make_run(
            need.flagfile,
            seed,
            *make_command(need).split()[3:-4],
            layers=dict.fromkeys(
                ("factorization", "probe_r2_ood"), [1.0, 0.9, 0.8, 0.7, 0.6]
            ),
            log_volume_difference=[0.1, 0.2, 0.3, 0.4, 0.5 + 0.1 * seed],
            relative=0.8 + 0.1 * seed,
        )
        for need in FIGURES[name].needs.values()
        for seed in range(3)
    ]
    return Planted(tuple(runs), (make_study("study"),)).gather()


@pytest.mark.parametrize(("name", "count"), [("3e", 1), ("4c", 1), ("13", 3)])
def test_scores_are_drawn_without_networks(
    name: str, count: int, tmp_path: Path
) -> None:
    (entry,), text = write(tmp_path, plant(name), name)
    assert len(entry.files) == count
    for file in entry.files.values():
        with Image.open(tmp_path / file) as image:
            assert max(image.size) > 700  # 200 dots an inch
    assert (
        "`python -m reproduction.figures --output=" in text
        and FIGURES[name].shows in text
    )
    for label, need in FIGURES[name].needs.items():
        assert f"- {label}: planted, seeds 0, 1, 2" in text
        if name == "13":  # its maps need networks
            line = f"a run folder with the network: `{make_command(need)}`"
            assert line in text
    assert ("Missing" in text) is (name == "13")


def test_a_map_over_size_and_share_shows_one_sweep(tmp_path: Path) -> None:
    assert (SHIPPED / f"{FIGURES['N'].sweep}{SUFFIX}").exists()
    figure = dataclasses.replace(FIGURES["N"], sweep="planted")
    runs = [
        make_run(
            *("donut.flags", seed, f"--grid_size={size}"),
            f"--region=square:{bounds}",
            relative=0.2 * size * (1 + seed),
        )
        for size, bounds in ((16, "6-9"), (16, "4-11"), (24, "6-17"))
        for seed in (0, 3)
    ]
    place = "--epochs=1", "--region=square:6-9"  # of a first try
    tries = [
        make_run("donut.flags", 0, *place, f"--grid_size={size}", relative=9.0)
        for size in (16, 32)
    ]
    found = figure.find(gather([*runs, *tries]))
    (drawn,) = score_pictures.draw_error_map(found, "ood/relative_mse").values()
    dots = sorted(drawn.axes[0].lines[0].get_xydata().tolist())
    assert dots == [[16, 100 * 4**2 / 16**2], [16, 25], [24, 25]]
    for evidence, text in (
        (gather(runs), "1 drawn"),
        (gather(runs[:4]), "0 drawn"),
        (Evidence(), "0 drawn, missing: the sweep planted"),
    ):
        settings = {"output": tmp_path, "format": "png"}
        (entry,) = command.write_figures([figure], evidence, settings)
        assert str(entry) == text


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
    runs = [
        make_run("donut.flags", seed, fit=fit) for seed, fit in errors.items()
    ]
    (found,), index = write(tmp_path, gather(runs), "1e")
    assert found.groups[label].seeds == [101, 102]
    assert "seeds 101, 102 (1 not fitted)" in index
    drawn = score_pictures.draw_scores(found, ["id/relative_mse"])
    ((caption, figure),) = drawn.items()  # as `plot_paper` shows them
    assert caption.startswith("All seeds that fit ID (where none does, all)")
    assert figure.data["value"].tolist()[:2] == [0.01, 0.02]
    # Where none is fitted, all are shown.
    found = FIGURES["1e"].find(gather(runs[:1]))
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
    run = make_run("donut.flags", 100)
    lines = [f"--{k}={str(v).lower()}" for k, v in run.flags.items()]
    (tmp_path / "run.flags").write_text("\n".join(lines))
    (tmp_path / "metrics.json").write_text(json.dumps(run.metrics))
    (tmp_path / "model.keras").write_text("no model")
    flags = [f"--runs={tmp_path}", f"--output={tmp_path / 'figures'}"]
    assert command.main(["", *flags, "--only=1c,1e"]) == 0
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
