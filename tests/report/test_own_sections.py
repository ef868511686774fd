"""Sections of reports that users register."""

from pathlib import Path

import pytest

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.report.sections import make_user_sections


@pytest.fixture(scope="module")
def result():
    flags = ["--flagfile=smoke.flags", "--grid_size=8", "--region=square:3-4"]
    data = make_dataset(parse_config(flags))
    return tfcomp.evaluate(data.render_array, data, name="perfect")


def show(models: list) -> list[tfcomp.Exhibit]:
    rows = [{"model": model.name, "answer": 42} for model in models]
    return [tfcomp.Exhibit("answers", "Answers", "All of them.", rows=rows)]


def test_a_section_stands_at_the_end(result, tmp_path: Path) -> None:
    tfcomp.register_section("mine", title="My part", text="Is it?")(show)
    page = result.write_report(tmp_path / "report").read_text()
    assert "Held out square:3-4. Made by tfcomp" in page  # above all numbers
    assert page.index("My part") > page.index("Runs and flags")
    assert 'id="section-own_mine"' in page and "All of them." in page
    table = (tmp_path / "report/own_mine_answers.csv").read_text()
    assert table.splitlines() == ["model,answer", "perfect,42"]


def fail(models: list) -> list:
    raise ZeroDivisionError("no\nmodels")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fail, "ZeroDivisionError: no models"),
        (lambda models: [1], "must return a list of tfcomp.Exhibit, got int"),
        (lambda models: None, "TypeError"),
        (lambda models: show(models) * 2, "names of exhibits must differ"),
    ],
)
def test_a_section_that_fails_is_left_out(
    function, words: str, capsys: pytest.CaptureFixture
) -> None:
    tfcomp.register_section("mine")(function)
    tfcomp.register_section("fine")(show)
    (section,) = make_user_sections([], ["fine", "mine"])
    assert section.anchor == "own_fine"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and words in lines[0]
    assert lines[0].startswith("note: the section 'mine' is left out: ")


def test_mistakes_of_registration() -> None:
    tfcomp.register_section("mine")(show)
    tfcomp.register_section("mine", title="Again")(show)  # the same function
    with pytest.raises(ValueError, match="'mine' is registered already"):
        tfcomp.register_section("mine")(fail)
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        tfcomp.register_section("../up")
