"""What is made of the networks of a study: judgements, tables, figures."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tfcomp.config.progress import show_progress
from tfcomp.figures.exhibits import save_exhibit
from tfcomp.storage.files import write_csv
from tfcomp.studies.prediction.design import HALVES
from tfcomp.studies.prediction.evidence import make_evidence
from tfcomp.studies.prediction.judgement import Evidence, Row, judge
from tfcomp.studies.prediction.predict_figures import make_exhibits
from tfcomp.studies.prediction.records import Found


def write_report(
    folder: Path,
    found: Sequence[Found],
    hyperparameters: Sequence[tuple[str, ...]],
) -> None:
    """Writes a table for each half of the design, and the figures."""
    halves = {
        half: make_evidence(
            [each for each in found if each.cell.half == half], hyperparameters
        )
        for half in HALVES
    }
    tables = judge_halves(halves)
    for half, rows in tables.items():
        if rows:
            write_csv(folder / f"{half}.csv", rows)
    for exhibit in make_exhibits(tables, halves):
        save_exhibit(exhibit, folder / "figures")


def judge_halves(
    halves: Mapping[str, Evidence | None],
) -> dict[str, list[Row]]:
    """The rows of both halves; none for one that has no networks."""
    first, second = (halves[half] for half in HALVES)
    if first is None:
        return {half: [] for half in HALVES}
    keys = first.list_keys()
    rows = list(_watch(judge(first, keys), HALVES[0], len(keys)))
    if second is None:
        return {HALVES[0]: rows, HALVES[1]: []}
    found = dict(zip(keys, rows, strict=True))
    proposed = [key for key, row in found.items() if row["passes"]]
    # What was not proposed is shown beside it, and has no say.
    shown = [key for key in second.list_keys() if key in found]
    signs = {key: row["sign"] for key, row in found.items()}
    again = _watch(judge(second, shown, signs, proposed), HALVES[1], len(shown))
    confirmed = [
        row
        | {"proposed": key in proposed}
        | {"predicts": key in proposed and row["passes"]}
        for key, row in zip(shown, again, strict=True)
    ]
    return {HALVES[0]: rows, HALVES[1]: confirmed}


def _watch(rows: Iterator[Row], name: str, count: int) -> Iterator[Row]:
    return iter(show_progress(rows, name, "measure", count))
