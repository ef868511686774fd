"""Which decoder composes? Tables and a picture from finished runs.

    tfcomp study decoders --runs=docs/decoder_evidence --output=decoders

judges every decoder on every split
(`tfcomp.studies.decoders.decoder_table`) and writes
decoders.csv, decoders.md and decoders.png; and, of splits of sprites, whether
it solves what training determines (`tfcomp.studies.decoders.solved`), in
solved.csv, solved.md and solved.png. `--sheets` draws held-out images of every
split in sheets/*.png (`tfcomp.studies.decoders.image_sheets`). The runs come
from the sweeps decoders_truth.flags, decoders_bumps.flags,
decoders_sprites.flags, decoders_acting.flags (and, further looks,
decoders_acting_second.flags and decoders_acting_third.flags),
decoders_law.flags, decoders_forced.flags,
decoders_forced_composed.flags, decoders_acting_bumps.flags and
decoders_acting_composed.flags; a decoder of your own becomes a row once it is
in such a sweep (docs/decoders.md).
"""

from collections import Counter
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from tfcomp.config.run_flags import make_flags
from tfcomp.statistics.setting_table import format_rows
from tfcomp.storage.files import write_bytes, write_text
from tfcomp.storage.output_folders import check_folder
from tfcomp.studies import Study
from tfcomp.studies.decoders import decoder_table
from tfcomp.studies.decoders.decoder_table import FRESH, NUMBERS, Case

FLAGS = {
    "runs": (
        "",
        "Sweeps, or folders that contain them or packed evidence: patterns "
        "with *, separated by commas.",
    ),
    "output": ("decoders", "The folder for the tables and the picture."),
    "sheets": (
        False,
        "Draw held-out images of every split, too, by the networks that are "
        "in the folders of runs or published; the tables lead to them.",
    ),
}
TRUTH = ["data and split", "the matching decoder composes", "others fail"]
SIGNS = {"composes": "yes", "fails": "no", "undecided": "?", "not fitted": "–"}


def tabulate(settings: dict[str, Any]) -> int:
    """Judges what the flags name, writes the tables and the picture.

    Raises ConfigError if there is no folder to write, or nothing to read.
    """
    check_folder("output", settings["output"])
    from tfcomp.studies.claims import read_some_evidence
    from tfcomp.studies.decoders.image_sheets import write_sheets
    from tfcomp.studies.decoders.solved import list_splits
    from tfcomp.studies.decoders.solved_report import write_splits

    runs = read_some_evidence(settings["runs"]).runs
    old = [run for run in runs if run.seed < FRESH]
    cases = decoder_table.list_cases(old or runs)
    output = Path(settings["output"])
    output.mkdir(parents=True, exist_ok=True)
    sheets = write_sheets(runs, output) if settings["sheets"] else []
    decoder_table.write_rounded(
        output / "decoders.csv", map(describe_case, cases)
    )
    truth = [list(row.values()) for row in decoder_table.judge_truth(cases)]
    tables = [*format_verdicts(cases, output), format_rows([TRUTH, *truth])]
    text = "\n".join([*tables, format_costs(cases)])
    write_text(output / "decoders.md", text)
    write_bytes(output / "decoders.png", draw_picture(cases))
    splits = list_splits(runs)
    print(text + write_splits(splits, output), end="")
    print(f"tables  {output}")
    for path in sheets:
        print(f"images  {path}")
    return 0


def describe_case(case: Case) -> dict[str, Any]:
    """A row of the table of numbers: means over seeds."""
    low, high = case.interval or (None, None)
    ood = case.compute_r2("ood")
    numbers = {name: case.average(name) for name in NUMBERS}
    return {
        "split": case.split,
        "decoder": case.decoder,
        "seeds": len(case.runs),
        "fitted": len(case.fitted),
        "verdict": case.verdict,
        "expected": case.expected,
        "ood_r2": mean(ood) if ood else None,
        "ood_r2_low": low,
        "ood_r2_high": high,
        "id_r2_worst": min(case.compute_r2("id"), default=None),
        **numbers,
        "over_additive": _divide(numbers, "additive_predictor"),
        "over_nearest": _divide(numbers, "nearest_memory"),
    }


def format_verdicts(cases: list[Case], output: Path) -> list[str]:
    """The verdicts with OOD R^2, and links to images, by kind of data."""
    from tfcomp.studies.decoders.image_sheets import link

    tables = []
    for data in _list_data(cases):
        here = [case for case in cases if case.data == data]
        found = {(c.decoder, c.split): _describe_cell(c) for c in here}
        decoders, splits = _list_names(here)
        rows = [
            [decoder, *(found.get((decoder, split), "") for split in splits)]
            for decoder in decoders
        ]
        heads = [link(split, split, output) for split in splits]
        tables.append(format_rows([["decoder", *heads], *rows]))
    return tables


def format_costs(cases: list[Case]) -> str:
    """Weights and seconds of training, means over the splits of some data."""
    pairs = list(product(_list_data(cases), ("weights", "seconds")))
    words = {"weights": "weights", "seconds": "s of training"}
    rows = [["decoder", *(f"{data}: {words[name]}" for data, name in pairs)]]
    for decoder in sorted({case.decoder for case in cases}):
        here = [case for case in cases if case.decoder == decoder]
        cells = []
        for data, name in pairs:
            found = [case.average(name) for case in here if case.data == data]
            known = [number for number in found if number is not None]
            cells.append(f"{mean(known):,.0f}" if known else "")
        rows.append([decoder, *cells])
    return format_rows(rows)


def draw_picture(cases: list[Case]) -> bytes:
    """All cases as colors, a PNG file."""
    from tfcomp.figures.exhibits import figure_to_png
    from tfcomp.figures.map_plots import draw_score_table

    values, texts = {}, {}
    for case in cases:
        key, ood = (case.decoder, case.split), case.compute_r2("ood")
        values[key] = mean(ood) if ood else float("nan")
        texts[key] = _describe_cell(case)
    figure = draw_score_table(
        values,
        texts,
        *_list_names(cases),
        label="OOD R² (below 0 as 0)",
        title="Which decoder composes? Mean over seeds; gray: not fitted, "
        "white: not in this comparison",
    )
    return figure_to_png(figure, num_colors=256, dpi=150)


def _describe_cell(case: Case) -> str:
    ood, sign = case.compute_r2("ood"), SIGNS[case.verdict]
    count = f" ({len(case.fitted)} of {len(case.runs)})"
    count *= len(case.fitted) < len(case.runs)
    return f"{sign} {mean(ood):.2f}{count}" if ood else f"{sign}{count}"


def _list_data(cases: list[Case]) -> list[str]:
    return sorted({case.data for case in cases})


def _list_names(cases: list[Case]) -> tuple[list[str], list[str]]:
    """Decoders, those that compose on most splits first, and splits."""
    counts = Counter(case.decoder for case in cases)
    for case in cases:
        counts[case.decoder] += 1000 * (case.verdict == "composes")
    decoders = sorted(counts, key=lambda name: (-counts[name], name))
    return decoders, sorted({case.split for case in cases})


def _divide(numbers: dict[str, float | None], name: str) -> float | None:
    error, other = numbers["ood_relative_mse"], numbers[name]
    return error / other if error is not None and other else None


STUDY = Study(
    "decoders",
    __doc__,
    lambda: make_flags(FLAGS),
    tabulate,
    plan=(
        "decoders_truth decoders_bumps decoders_sprites decoders_rates "
        "decoders_acting decoders_law decoders_acting_second "
        "decoders_acting_third decoders_forced_rates decoders_forced_composed "
        "decoders_forced decoders_acting_bumps decoders_acting_composed"
    ).split(),
)
main = STUDY.main
