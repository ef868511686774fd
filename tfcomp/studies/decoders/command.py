"""Which decoder composes? Tables and a picture from finished runs.

    tfcomp study decoders --runs=docs/decoder_evidence --output=decoders

judges every decoder on every split
(`tfcomp.studies.decoders.decoder_table`) and writes
decoders.csv, decoders.md and decoders.png; and, of splits of sprites, whether
it solves what training determines (`tfcomp.studies.decoders.solved`), in
solved.csv, solved.md and solved.png. The runs come
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

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import make_flags
from tfcomp.statistics.setting_table import format_rows
from tfcomp.storage.files import make_folder, write_bytes, write_text
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
}
TRUTH = ["data and split", "the matching decoder composes", "others fail"]
SIGNS = {"composes": "yes", "fails": "no", "undecided": "?", "not fitted": "–"}


def tabulate(settings: dict[str, Any]) -> int:
    """Judges runs; writes the tables and the pictures.

    Raises ConfigError if there is no folder to write, or nothing to read.
    """
    check_folder("output", settings["output"])
    # Imported here: bad flags must be answered without pandas.
    from tfcomp.studies.decoders.solved import list_splits
    from tfcomp.studies.decoders.solved_report import write_splits
    from tfcomp.tables import read_results

    results = read_results(split_names(settings["runs"]), history=False)
    if not len(results.runs):
        raise ConfigError("runs", "must match finished runs", settings["runs"])
    table = decoder_table.tabulate_runs(results)
    old = table[table["seed"] < FRESH]
    cases = decoder_table.list_cases(old if len(old) else table, results.flags)
    output = Path(settings["output"])
    make_folder(output)
    rows = map(describe_case, cases)
    decoder_table.write_rounded(output / "decoders.csv", rows)
    truth = [list(row.values()) for row in decoder_table.judge_truth(cases)]
    tables = [*format_verdicts(cases), format_rows([TRUTH, *truth])]
    text = "\n".join([*tables, format_costs(cases)])
    write_text(output / "decoders.md", text)
    write_bytes(output / "decoders.png", draw_picture(cases))
    print(text + write_splits(list_splits(table), output), end="")
    print(f"tables  {output}")
    return 0


def describe_case(case: Case) -> dict[str, Any]:
    """Returns a row of decoders.csv: means over seeds."""
    low, high = case.interval or (None, None)
    ood = case.values
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
        "id_r2_worst": min(case.fitted["id_r2"], default=None),
        **numbers,
        "over_additive": _divide(numbers, "additive_predictor"),
        "over_nearest": _divide(numbers, "nearest_memory"),
    }


def format_verdicts(cases: list[Case]) -> list[str]:
    """Returns a table of verdicts with OOD R^2 for each kind of data."""
    tables = []
    for data in _list_data(cases):
        here = [case for case in cases if case.data == data]
        found = {(c.decoder, c.split): _describe_cell(c) for c in here}
        decoders, splits = _list_names(here)
        rows = [
            [decoder, *(found.get((decoder, split), "") for split in splits)]
            for decoder in decoders
        ]
        tables.append(format_rows([["decoder", *splits], *rows]))
    return tables


def format_costs(cases: list[Case]) -> str:
    """Returns mean weights and seconds of training, by kind of data."""
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
    """Returns a PNG file with all cases as colors."""
    from tfcomp.figures.exhibits import figure_to_png
    from tfcomp.figures.map_plots import draw_score_table

    values, texts = {}, {}
    for case in cases:
        key, ood = (case.decoder, case.split), case.values
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
    ood, sign = case.values, SIGNS[case.verdict]
    count = f" ({len(case.fitted)} of {len(case.runs)})"
    count *= len(case.fitted) < len(case.runs)
    return f"{sign} {mean(ood):.2f}{count}" if ood else f"{sign}{count}"


def _list_data(cases: list[Case]) -> list[str]:
    return sorted({case.data for case in cases})


def _list_names(cases: list[Case]) -> tuple[list[str], list[str]]:
    """Returns decoders, by how often they compose, and splits."""
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
