"""Figures drawn by another process are those that this one draws."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tfcomp.config.helper_process import HelperProcess
from tfcomp.figures import draw_process, exhibits
from tfcomp.figures.exhibits import Exhibit, figure_to_pdf, save_exhibit
from tfcomp.figures.layout import add_panel_title, finish_figure, make_panels


@pytest.fixture(autouse=True)
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[HelperProcess]:
    made = []

    def make(module: str) -> HelperProcess:
        made.append(HelperProcess(module))
        return made[-1]

    monkeypatch.setattr(exhibits, "figure_to_pdf", figure_to_pdf)
    monkeypatch.setattr(draw_process, "HelperProcess", make)
    # One that was started for a report that came to nothing.
    monkeypatch.setattr(draw_process, "_started", [])
    yield made
    assert all(process._process.poll() is not None for process in made)


def make_exhibit(name: str) -> Exhibit:
    figure, panels = make_panels((1, 2), (6, 3), 0.1)
    for axes, panel in zip(panels.flat, "ab", strict=True):
        image = axes.imshow(np.arange(12).reshape(3, 4))
        figure.colorbar(image, ax=axes, label="units")
        add_panel_title(axes, f"panel {panel}", 3)
    finish_figure(figure, name)
    return Exhibit(name, name, "", figure, [{"n": 1}])


def read(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_the_same_bytes(tmp_path: Path) -> None:
    save_exhibit(make_exhibit("first"), tmp_path / "here")
    with draw_process.drawn_elsewhere() as drawing:
        exhibit = make_exhibit("first")
        assert exhibit.figure.is_unsettled
        drawing.save([exhibit], tmp_path / "there")
        drawing.wait()
        assert exhibit.figure.is_unsettled  # it was not drawn here
    found = read(tmp_path / "there")
    assert found == read(tmp_path / "here")
    assert set(found) == {"first.png", "first.pdf", "first.csv"}
    assert not make_exhibit("second").figure.is_unsettled


def test_what_it_cannot_draw_is_drawn_here(
    tmp_path: Path, helper: list[HelperProcess]
) -> None:
    figure = Figure()
    axis = figure.add_subplot().xaxis
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x} m"))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(figure)
    with draw_process.drawn_elsewhere() as drawing:
        drawing.save([Exhibit("lambda", "", "", figure)], tmp_path)
        assert (tmp_path / "lambda.png").exists()
        helper[0]._process.kill()
        drawing.save([make_exhibit("ended"), make_exhibit("after")], tmp_path)
        drawing.wait()
    assert {"ended.png", "after.pdf"} <= set(read(tmp_path))


def test_an_error_is_that_of_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with draw_process.drawn_elsewhere() as drawing:
        with pytest.raises(OSError):
            drawing.save([make_exhibit("any")], tmp_path / "file")
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "any.png").mkdir()  # in its place
        drawing.save([make_exhibit("any")], folder)
        with pytest.raises(OSError):
            drawing.wait()


def test_who_interrupts_it_does_not_wait(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        with draw_process.drawn_elsewhere() as drawing:
            drawing.save([make_exhibit(n) for n in "abc"], tmp_path)
            raise KeyboardInterrupt
    drawing._pool.shutdown(wait=True)
    assert not list(tmp_path.glob("c.p*"))  # nor is it drawn here
