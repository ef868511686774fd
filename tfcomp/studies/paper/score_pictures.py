"""Pictures of scores and measures over seeds: packed evidence has them."""

from collections.abc import Sequence

from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest
from tfcomp.studies.claims.all_claims import CLAIMS
from tfcomp.studies.claims.claim_pictures import draw_stages
from tfcomp.studies.claims.estimation import estimate
from tfcomp.studies.claims.run_numbers import PerStage, subtract_code
from tfcomp.studies.paper.paper_figure import Drawn, Found

# What is read of a run, its unit, and what it is.
STAGES: dict[str, tuple[PerStage, str, str]] = {
    "factorization": ("factorization", "F (eq. 7)", "Factorization"),
    "probes": ("probe_r2_ood", "R²", "Linear probes from ID to OOD"),
    "volume": (
        lambda run: subtract_code(run.get_stages("log_volume_difference")),
        "log-volume, OOD - ID - code",
        "Mean log-volume over OOD less that over ID points, less the same of "
        "the code",
    ),
}


def draw_claim(found: Found, name: str) -> Drawn:
    """The curves that the report shows of a claim."""
    (claim,) = (claim for claim in CLAIMS if claim.name == name)
    return claim.draw(found.evidence)


def draw_measure(found: Found, name: str, codes: Sequence[str]) -> Drawn:
    """One of `STAGES` per stage: a panel for each code, a line for a group."""
    read, ylabel, words = STAGES[name]
    panels = {
        f"{code} code": (
            {
                label.removeprefix(f"{code}, "): group
                for label, group in found.groups.items()
                if label.startswith(code)
            },
            read,
        )
        for code in codes
    }
    caption = f"{words}, mean over seeds, with 95 % intervals."
    return draw_stages(panels, ylabel, caption)


def draw_scores(found: Found, names: Sequence[str]) -> Drawn:
    """Scores of all groups, side by side, on logarithmic scales."""
    panels = []
    for name in names:
        means = {k: estimate(name, g) for k, g in found.groups.items()}
        rows = [
            ForestRow(k, m.mean, m.low, m.high, list(m.values.values()))
            for k, m in means.items()
            if m is not None
        ]
        panels.append(ForestPanel(name, rows, is_log=True))
    if not all(panel.rows for panel in panels):
        return {}
    caption = "Every seed (gray), the mean (diamond), its 95 % interval."
    return {caption: draw_forest(panels, side_by_side=True)}
