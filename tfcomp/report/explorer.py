"""The explorer: outputs of every run at the combination under the pointer.

The HTML is self-contained: it works from a file, in a mail and in a notebook.
"""

import html
import json
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.report.explorer_data import collect
from tfcomp.report.page import TEMPLATES, render_template
from tfcomp.report.run_exhibits import rename_runs
from tfcomp.storage.files import write_text


class Explorer:
    """An explorer, which a notebook shows; `html` is the whole page."""

    def __init__(self, analyses: Sequence[RunAnalysis]) -> None:
        analyses = rename_runs(analyses)
        names = ", ".join(analysis.name for analysis in analyses)
        self.html = render_template(
            TEMPLATES / "explorer_page.html",
            title=f"Explorer of {names}",
            explorer=Markup(explorer_fragment(analyses)),
        )

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="explorer" '
            'style="width: 100%; height: 860px; border: 0"></iframe>'
        )

    def write(self, path: str | Path) -> Path:
        """Writes the page to a file; returns its path."""
        write_text(Path(path), self.html)
        return Path(path)


def explorer_fragment(analyses: Sequence[RunAnalysis]) -> str:
    """Returns HTML for the top of a page, empty without runs."""
    if not analyses:
        return ""
    data, sprites = collect(analyses), []
    epochs = [epoch for run in data["runs"] for epoch in run["epochs"]]
    for part in (*data["groups"], *data["runs"], *epochs):
        sprites.append(part["sprite"])
        part["sprite"] = len(sprites) - 1
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return render_template(
        TEMPLATES / "explorer.html",
        sprites=sprites,
        # No name of a factor can end the script.
        data=Markup(text.replace("<", "\\u003c")),
    )
