"""Tables and a picture of splits by what training determines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.statistics.setting_table import format_rows
from tfcomp.storage.files import write_bytes, write_text
from tfcomp.studies.decoders.decoder_table import write_rounded
from tfcomp.studies.decoders.solved import (
    Solved,
    Split,
    correlate,
    list_new,
)

OWN = "acting"


def write_splits(splits: Sequence[Split], output: Path) -> str:
    """Writes solved.csv, solved.md and solved.png; returns the Markdown."""
    if not splits:
        return ""
    rows = [row for split in splits for row in list_rows(split)]
    write_rounded(output / "solved.csv", rows)
    text = f"{format_splits(splits)}\n{format_law(splits)}"
    write_text(output / "solved.md", text)
    write_bytes(output / "solved.png", draw_splits(splits))
    return f"\n{text}"


def list_rows(split: Split) -> list[dict[str, Any]]:
    """Returns the numbers of solved.csv, for each decoder and predictor."""
    shared = {
        "split": split.name,
        "training_images": split.num_train,
        **{f"certified_{k}": share for k, share in split.certified.items()},
        "missing_images": split.missing,
        "lit_pixels": split.lit,
    }
    looks = [*split.decoders.items()]
    looks += [(n, s) for n, before in split.earlier.items() for s in before]
    rows = [shared | _describe(name, solved) for name, solved in looks]
    empty = dict.fromkeys(list(rows[0])[len(shared) :])
    return rows + [
        shared | empty | {"decoder": f"({name})", "r2": value}
        for name, value in split.predictors.items()
    ]


def _describe(name: str, solved: Solved) -> dict[str, Any]:
    """Returns the numbers of a look at a decoder."""
    low, high = solved.ends
    return {
        "decoder": name,
        "first_seed": solved.first_seed,
        "runs": len(solved.runs),
        "fitted": len(solved.fitted),
        "fitted_at_85": solved.count(0.85),
        "fitted_at_95": solved.count(0.95),
        "r2": solved.mean,
        "r2_low": low,
        "r2_high": high,
        "r2_certified": solved.average("certified"),
        "r2_others": solved.average("others"),
    }


def format_splits(splits: Sequence[Split]) -> str:
    """Returns a row for each split, the certified first."""
    rows = []
    for split in splits:
        acting = split.decoders.get(OWN)
        rows.append(
            {
                "held out": f"`{split.name}`",
                "certified": f"{split.share:.0%}",
                "training images": _format(split.num_train, ","),
                "images missing": _format(split.missing, ",.0f"),
                "pixels lit": _format(split.lit, ".0%"),
                "nearest image": _format(split.predictors.get("nearest")),
                "additive predictor": _format(split.predictors.get("additive")),
                "acting": "not run" if acting is None else _list_looks(split),
                "of certified, others": _describe_kinds(acting),
                "best of the others": _describe_best(split),
            }
        )
    return format_rows([list(rows[0]), *(list(row.values()) for row in rows)])


def format_law(splits: Sequence[Split]) -> str:
    """Returns how R^2 goes with the certified share, over new splits."""
    splits = list_new(splits)
    names = sorted({name for split in splits for name in split.decoders})
    rows = []
    for name in names:
        if found := correlate(splits, name):
            tau, low, high, count = found
            rows.append([name, count, f"{tau:.2f} [{low:.2f}, {high:.2f}]"])
    head = ["decoder", "splits", "Kendall's tau of R² and certified share"]
    return format_rows([head, *rows]) if rows else ""


def draw_splits(splits: Sequence[Split]) -> bytes:
    """Returns a PNG file of all decoders and predictors on all splits."""
    from tfcomp.figures.exhibits import figure_to_png
    from tfcomp.figures.map_plots import draw_score_table

    values, texts = {}, {}
    names = [f"{', '.join(s.name.split(','))} {s.share:.0%}" for s in splits]
    for split, column in zip(splits, names, strict=True):
        found = {name: s.mean for name, s in split.decoders.items()}
        for name, value in split.predictors.items():
            if value is not None:
                found[f"({name})"] = value
        for name, value in found.items():
            values[name, column] = float("nan") if value is None else value
            texts[name, column] = _format(value)
    order = sorted(
        {row for row, _ in values},
        key=lambda row: (row.startswith("("), row != OWN, row),
    )
    figure = draw_score_table(
        values,
        texts,
        order,
        names,
        label="R² of held-out images (below 0 as 0)",
        title="Held-out combinations by the share that training determines; "
        "gray: does not fit, white: not run, in parentheses: no network",
    )
    return figure_to_png(figure, num_colors=256, dpi=110)


def _list_looks(split: Split) -> str:
    """Returns the latest look at the own decoder, and the earlier ones."""
    before = split.earlier.get(OWN, ())
    names = ["first", "second"][: len(before)]
    looks = [f"{n} look {s}" for n, s in zip(names, before, strict=True)]
    return "; ".join([f"{split.decoders[OWN]}", *looks])


def _describe_kinds(solved: Solved | None) -> str:
    names = ("certified", "others")
    kinds = [solved.average(name) for name in names] if solved else []
    return ", ".join(map(_format, kinds)) if any(kinds) else "–"


def _describe_best(split: Split) -> str:
    found = split.decoders.items()
    others = {n: s for n, s in found if n != OWN and s.mean is not None}
    if not others:
        return "not run"
    name = max(others, key=lambda name: others[name].mean or 0.0)
    return f"{name} {others[name]}"


def _format(value: float | None, digits: str = ".2f") -> str:
    return "–" if value is None else format(value, digits)
