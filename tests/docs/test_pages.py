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

DOCS = ROOT / "docs"
TITLES = {
    "Scores of images": ("image",),
    "Numbers of stages": ("stage", "stages"),
    "Numbers of runs": ("run",),
}


def read_table(title: str) -> dict[str, list[str]]:
    """Returns definition, range, unit and better of each number."""
    page = (DOCS / "reference.md").read_text("utf-8")
    _, _, rest = page.partition(f"### {title}\n")
    text, _, _ = rest.partition("\n### ")
    table = {}
    for line in text.replace("\\|", "¦").splitlines():
        if not line.startswith("| `"):
            continue
        name, *cells = line.split("|")[1:-1]
        table[name.strip().strip("`")] = [cell.strip() for cell in cells]
    return table


def test_the_page_defines_what_is_declared():
    for title, of in TITLES.items():
        table = read_table(title)
        metrics = {m.name: m for m in list_metrics(*of)}
        assert table.keys() == metrics.keys()
        for name, (text, *cells) in table.items():
            metric = metrics[name]
            limits = str(metric.limits).replace("(-inf, inf)", "")
            assert cells == [limits, metric.unit, metric.better or ""]
            if metric.about:  # as pages show it
                shown = f"**{metric.label}**: {metric.about}"
                assert text.replace("¦", "|") == shown
            assert text


@pytest.mark.parametrize("name", ["donut", "own_data"])
def test_notebook_ran_the_code_of_its_tutorial(name: str):
    page = (DOCS / "tutorials" / f"{name}.md").read_text("utf-8")
    code = []
    for block in list_blocks(page):
        if block.language != "text":
            code.append(block.body.strip())

    notebook = json.loads((DOCS / "notebooks" / f"{name}.ipynb").read_text())
    ran = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            ran.append(re.sub(r"^%%.*\n", "", source).strip())
            assert cell["outputs"]
    assert ran == code


@pytest.mark.parametrize(
    "name",
    "FactorTable cover_embeddings describe_run evaluate plot_coverage "
    "plot_curves plot_paper plot_scores read_runs".split(),
)
def test_examples_print_what_they_say(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(ROOT)
    function = plot_paper
    if name != "plot_paper":
        function = getattr(tfcomp, name)
    names = {"tfcomp": tfcomp, "np": np, "pd": pd, "plot_paper": plot_paper}
    tests = doctest.DocTestFinder().find(function, name, globs=names)
    (test,) = (test for test in tests if test.name == name)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0
