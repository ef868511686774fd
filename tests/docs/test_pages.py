"""Tables, notebooks and examples of docstrings agree with the code."""

import doctest
import json
import re

import numpy as np
import pandas as pd
import pytest

import tfcomp
from reproduction.figures.command import plot_paper
from tests.docs.page_blocks import ROOT, list_blocks
from tfcomp.metrics.registry import list_metrics

TITLES = {
    "Scores of images": ("image",),
    "Numbers of stages": ("stage", "stages"),
    "Numbers of runs": ("run",),
}


def read_table(title: str) -> dict[str, list[str]]:
    """Returns definition, range, unit and better of each number."""
    _, _, text = (
        (DOCS / "reference.md").read_text("utf-8").partition(f"### {title}\n")
    )
    lines = text.partition("\n### ")[0].replace("\\|", "¦").splitlines()
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in lines]
    named = [row for row in rows if row and row[0].startswith("`")]
    return {name.strip("`"): cells for name, *cells in named}


def test_the_page_defines_what_is_declared() -> None:
    for title, of in TITLES.items():
        table = read_table(title)
        metrics = {m.name: m for m in list_metrics(*of) if not m.is_user}
        assert table.keys() == metrics.keys()
        for name, (text, *cells) in table.items():
            metric = metrics[name]
            limits = str(metric.limits).replace("(-inf, inf)", "")
            assert cells == [limits, metric.unit, metric.better or ""]
            if metric.about:  # as pages show it
                shown = f"**{metric.label}**: {metric.about}"
                assert text.replace("¦", "|") == shown
            assert text


DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", ["donut", "own_data"])
def test_notebook_ran_the_code_of_its_tutorial(name: str) -> None:
    page = (DOCS / "tutorials" / f"{name}.md").read_text("utf-8")
    shown = [
        block.body.strip()
        for block in list_blocks(page)
        if block.language != "text"
    ]
    notebook = json.loads((DOCS / "notebooks" / f"{name}.ipynb").read_text())
    ran = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"])
            ran.append(re.sub(r"^%%.*\n", "", code).strip())
            assert cell["outputs"]
    assert ran == shown


@pytest.mark.parametrize(
    "name",
    "FactorTable cover_embeddings describe_run evaluate plot_coverage "
    "plot_curves plot_paper plot_scores read_runs".split(),
)
def test_examples_print_what_they_say(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found = plot_paper if name == "plot_paper" else getattr(tfcomp, name)
    names = {"tfcomp": tfcomp, "np": np, "pd": pd, "plot_paper": plot_paper}
    (test,) = (
        test
        for test in doctest.DocTestFinder().find(found, name, globs=names)
        if test.name == name
    )
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0
