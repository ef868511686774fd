"""The notebooks are what the tutorials give, and their code is sound."""

import ast
import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load_script():
    spec = importlib.util.spec_from_file_location(
        "notebooks", DOCS / "notebooks.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["donut", "own_data"])
def test_notebook_is_that_of_the_page(name: str) -> None:
    page = (DOCS / "tutorials" / f"{name}.md").read_text()
    committed = (DOCS / "notebooks" / f"{name}.ipynb").read_text()
    expected = load_script().make_notebook(page)
    assert committed == expected, "run python docs/notebooks.py"
    notebook = json.loads(committed)
    codes = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(codes) >= 3 and not any(cell["outputs"] for cell in codes)
    sources = ["".join(cell["source"]) for cell in codes]
    for source in sources:
        if not source.startswith("%%"):
            ast.parse(source)
    assert not any("not run" in "".join(c["source"]) for c in notebook["cells"])
    # Every block of Python of the page is there.
    assert page.count("\n```python") == sum(
        source.startswith("%%writefile") or not source.startswith("%%")
        for source in sources
    )
