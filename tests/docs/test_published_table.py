"""The table of published models is what their files say.

With `UPDATE_PAGES=1` in the environment, it is written; models that have
changed are loaded, and the time of that is kept.
"""

import os
import re
import time

from tests.docs.page_blocks import ROOT
from tfcomp.storage.published_folder import DEFAULT, Published, list_published

FOLDER = ROOT / DEFAULT
PAGE = FOLDER / "README.md"
BEGIN = "<!-- made from the files by tests/docs -->\n"
HEAD = (
    "\n| model | weights | kB | ID | OOD | OOD R² | seconds to load |\n"
    "|---|---|---|---|---|---|---|\n"
)
FORMS = (".4g", ".4g", ".3f")  # of ID, OOD, OOD R²
MAX_BYTES = 40_000_000


def format_cells(model: Published) -> list[str]:
    numbers = (f"{model.weights:,}", f"{model.size / 1000:.0f}")
    known = zip((model.id, model.ood, model.r2), FORMS, strict=True)
    scores = ["–" if x is None else format(x, form) for x, form in known]
    return [f"`{model.name}`", *numbers, *scores]


def format_sum(models: list[Published]) -> str:
    size = sum(model.size for model in models) / 1e6
    return f"\n{len(models)} models, {size:.1f} MB.\n"


def measure_load(name: str) -> str:
    from tfcomp.models.loading import load_published_run

    start = time.process_time()  # whatever else the machine does
    load_published_run(name, str(FOLDER))
    return f"{time.process_time() - start:.1f}"


def test_the_table_is_what_the_files_say() -> None:
    models = list_published(str(FOLDER))
    start, _, shown = PAGE.read_text("utf-8").partition(BEGIN)
    rows = re.findall(r"^\| (`.*) \| ([\d.]+) \|$", shown, re.M)
    known = dict(rows)
    expected = [" | ".join(format_cells(model)) for model in models]
    if "UPDATE_PAGES" in os.environ:
        table = "".join(
            f"| {cells} | {known.get(cells) or measure_load(model.name)} |\n"
            for cells, model in zip(expected, models, strict=True)
        )
        text = f"{start}{BEGIN}{HEAD}{table}{format_sum(models)}"
        PAGE.write_text(text, "utf-8")
        return
    assert [cells for cells, _ in rows] == expected
    assert shown.endswith(format_sum(models))
    assert sum(model.size for model in models) < MAX_BYTES
