"""Writes the notebooks: tutorials as cells, without outputs.

    python docs/notebooks.py

A test holds the notebooks in `docs/notebooks` equal to what this writes. Text
becomes a cell of text, `python` a cell of code, `bash` one of the shell, and a
block with a title a cell that writes this file; what blocks print is left out.
"""

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGES = ("donut", "own_data")
BLOCK = re.compile(
    r"^(?P<skip><!-- not run -->\n)?```(?P<language>python|bash|text)"
    r"(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def main() -> None:
    """Writes all notebooks."""
    (DOCS / "notebooks").mkdir(exist_ok=True)
    for name in PAGES:
        text = make_notebook((DOCS / "tutorials" / f"{name}.md").read_text())
        (DOCS / "notebooks" / f"{name}.ipynb").write_text(text, "utf-8")


def make_notebook(page: str) -> str:
    """A tutorial as a notebook, in JSON."""
    cells, end = [], 0
    for found in BLOCK.finditer(page):
        cells.append(_make_text(page[end : found.start()]))
        cells.append(_make_code(found))
        end = found.end()
    cells.append(_make_text(page[end:]))
    numbered = [
        {"id": f"cell-{number}", **cell}
        for number, cell in enumerate(filter(None, cells))
    ]
    python = {"name": "python3", "display_name": "Python 3"}
    notebook = {
        "cells": numbered,
        "metadata": {"kernelspec": {**python, "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _make_text(markdown: str) -> dict[str, Any] | None:
    """A cell of text; its links lead to the tutorials beside the notebooks."""
    text = LINK.sub(_lead, COMMENT.sub("", markdown)).strip()
    if not text:
        return None
    return {"cell_type": "markdown", "metadata": {}, "source": _split(text)}


def _lead(link: re.Match) -> str:
    return f"](../tutorials/{link[1]}"


def _make_code(block: re.Match) -> dict[str, Any] | None:
    """A cell of code; None for what blocks print, and for long commands."""
    language, body = block["language"], block["body"]
    is_long = block["skip"] and body.startswith("tfcomp")
    if language == "text" or is_long:
        return None
    head = f"%%writefile {block['title']}\n" if block["title"] else ""
    head = head or ("%%bash\n" if language == "bash" else "")
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _split((head + body).strip()),
    }


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    main()
