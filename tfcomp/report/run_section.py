"""What the runs are, and what they were trained on."""

from collections.abc import Sequence

from tfcomp.datasets import solvable
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.models.acting_rules import CHANNELS, describe_channels
from tfcomp.report.page import Section

# That a report begins with, beside those in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()


def make_runs(studies: Sequence[Study]) -> Section:
    """Shows settings, coverage and flags."""
    settings, channels = _make_settings(studies), _make_channels(studies)
    tables = [settings, _make_coverage(studies), channels]
    return Section(
        "runs",
        "Runs and flags",
        "Settings, what training covered, and the flags that made the runs.",
        [table for table in tables if table.rows],
        _describe_settings(settings.rows),
        {study.name: study.run.description for study in studies},
    )


def _describe_settings(rows: Sequence[dict]) -> str:
    """What a run is, or in what several differ."""
    first, names = rows[0], list(rows[0])[1:]
    if len(rows) == 1:
        known = [n for n in names if first[n] not in (None, "")]
        return ", ".join(f"{name} {first[name]}" for name in known) + "."
    varied = [n for n in names if any(row[n] != first[n] for row in rows)]
    text = f"differ in {', '.join(varied)}" if varied else "have equal flags"
    return f"The runs {text}."


def _make_settings(studies: Sequence[Study]) -> Exhibit:
    flags = [s.run.config.identity() if s.run.path else {} for s in studies]
    names = dict.fromkeys(
        name
        for found in flags
        for name, value in found.items()
        if name in SETTINGS or any(f.get(name, value) != value for f in flags)
    )
    return Exhibit(
        "settings",
        "Settings",
        "The main settings, and those in which the runs differ.",
        rows=[
            {"run": study.name, "held out": study.dataset.region.spec}
            | {name: found.get(name) for name in names}
            for study, found in zip(studies, flags, strict=True)
        ],
    )


def _make_coverage(studies: Sequence[Study]) -> Exhibit:
    rows = [
        {"run": study.name, "region": study.dataset.region.spec}
        | solvable.measure_coverage(study.dataset)
        | _list_certified(study)
        for study in studies
    ]
    # Runs with more factors have more orders.
    columns = dict.fromkeys(name for row in rows for name in row)
    return Exhibit(
        "coverage",
        "What training covered",
        "Shares of what there is: of the combinations of the factors; of the "
        "values of a factor, averaged over factors; and of the pixels that "
        "change from image to image, those that do so in training. A decoder "
        "that is a free function of each pixel cannot know the others. "
        "certified_k: the share of held-out combinations that follow from the "
        "training combinations for whatever has no interactions of more than "
        "k factors; missing_k: the fewest further images that certify all.",
        rows=[{name: row.get(name) for name in columns} for row in rows],
    )


def _list_certified(study: Study) -> dict[str, float | None]:
    found = study.run.metrics.get("certificate")
    if found is None:
        found = solvable.certify_dataset(study.dataset)
        found = solvable.summarize_certificates(study.dataset, found)
    names = {"certified": "certified", "missing_rank": "missing"}
    return {
        f"{short}_{order}": numbers[name]
        for order, numbers in found.items()
        for name, short in names.items()
    }


def _make_channels(studies: Sequence[Study]) -> Exhibit:
    found = [
        (study.name, factor, channels)
        for study in studies
        for factor, channels in study.run.metrics.get("channels", {}).items()
    ]
    return Exhibit(
        "channels",
        "What the factors do",
        "The acting decoder lets every factor move, turn or scale an object, "
        "or change its template or color, and keeps few of these channels. "
        "Numbers are the spread of the values of the factor in a channel: of "
        "places in halves of the shorter side of the image, of angles in "
        "radians, of sizes in logarithms, of templates and colors in logits.",
        rows=[
            {
                "run": name,
                "factor": factor,
                "it": describe_channels({"": channels}).strip(),
                **{channel: channels.get(channel) for channel in CHANNELS},
            }
            for name, factor, channels in found
        ],
    )
