"""The tables of all numbers agree with the declarations."""

from tests.docs.page_blocks import ROOT
from tfcomp.evaluation.metrics import list_metrics

PAGE = ROOT / "docs" / "outputs.md"
TITLES = {
    "Scores of images": ("image",),
    "Numbers of stages": ("stage", "stages"),
    "Numbers of runs": ("run",),
}


def read_table(title: str) -> dict[str, list[str]]:
    """Returns definition, range, unit and better of each number."""
    _, _, text = PAGE.read_text("utf-8").partition(f"### {title}\n")
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
