"""Self-contained HTML pages: sections, exhibits, and the words of reports."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.config.errors import ConfigError, describe_plugin_error, suggest
from tfcomp.config.plugins import locate
from tfcomp.config.settings import split_names
from tfcomp.figures.curve_plots import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit, Plot
from tfcomp.figures.image_files import encode
from tfcomp.report.verbalize import to_file_name

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

Function = TypeVar("Function", bound=Callable[..., Sequence[Exhibit]])

Row = dict[str, Any]

CLOSE = 0.05  # numbers that differ less are "about equal"
MAX_NAMED = 3  # runs in a finding
TEMPLATES = Path(__file__).with_name("templates")
SHOWN_ROWS = 24
_TEXTS = tomllib.loads((TEMPLATES / "texts.toml").read_text("utf-8"))
# Content of the sections that can be chosen, by their names.
SECTIONS: dict[str, str] = {}
for _name, _text in _TEXTS["sections"].items():
    if "summary" in _text:
        SECTIONS[_name] = _text["summary"]
# Sections that take half a minute.
ASKED_FOR = ("inversion", "umap")


@dataclass(frozen=True)
class Section:
    """A part of a page: its finding is visible while it is folded."""

    anchor: str
    title: str
    introduction: str
    exhibits: Sequence[Exhibit]
    finding: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The first screen: sentences and exhibits."""

    sentences: Sequence[str]
    exhibits: Sequence[Exhibit]


def render_page(
    title: str,
    subtitle: str,
    answer: Answer,
    sections: Sequence[Section],
    folder: Path,
    explorer: str = "",
    place: str = "",
) -> str:
    """Renders a page as HTML.

    Args:
        title: The heading.
        subtitle: The line below it.
        answer: The first screen.
        sections: The other parts; empty ones are left out.
        folder: The folder with the pictures.
        explorer: HTML of the explorer, or nothing.
        place: The address of the folder from the page.
    """
    return render_template(
        TEMPLATES / "page.html",
        title=title,
        subtitle=subtitle,
        answer=answer,
        explorer=Markup(explorer),
        place=place,
        sections=[s for s in sections if s.exhibits or s.texts or s.finding],
        read_png=lambda name: (folder / f"{name}.png").read_bytes(),
    )


def render_template(path: Path, **values: Any) -> str:
    """Renders a template, which may extend `base.html`."""
    loader = jinja2.FileSystemLoader([path.parent, TEMPLATES])
    environment = jinja2.Environment(loader=loader, autoescape=True)
    environment.globals.update(
        encode=encode,
        format_cell=format_cell,
        keep_filled=keep_filled,
        shown_rows=SHOWN_ROWS,
    )
    return environment.get_template(path.name).render(**values)


def keep_filled(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows with the columns that have a value in some row."""
    columns = dict.fromkeys(itertools.chain.from_iterable(rows))
    filled = []
    for name in columns:
        values = [row.get(name) for row in rows]
        if any(value not in (None, "") for value in values):
            filled.append(name)
    return [{name: row.get(name) for name in filled} for row in rows]


def format_cell(value: object) -> str:
    """Formats a number with four significant digits, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


# Registered sections without exhibits, and the functions that make these.
_USER_SECTIONS: dict[str, tuple[Section, Callable[..., Any]]] = {}


def make_section(
    name: str,
    exhibits: Sequence[Exhibit],
    finding: str = "",
    texts: Mapping[str, str] | None = None,
    **values: object,
) -> Section:
    """Makes a built-in section of the exhibits that are not empty.

    Args:
        name: The name of the section, in `templates/texts.toml`.
        exhibits: Its pictures and tables.
        finding: One line that is visible while the section is folded.
        texts: Long texts by their headings.
        **values: What is filled into the question of the section.
    """
    words = _TEXTS["sections"][name]
    return Section(
        anchor=name,
        title=words["title"],
        introduction=_fill(words["question"], values),
        exhibits=[item for item in exhibits if item.figure or item.rows],
        finding=finding,
        texts=texts or {},
    )


def describe_vector_scores() -> str:
    """Returns the definitions of scores of embeddings."""
    return _fill(_TEXTS["vectors"]["scores"], {})


def make_exhibit(
    kind: str,
    figure: Figure | None = None,
    rows: Sequence[Row] = (),
    *,
    name: str = "",
    **values: object,
) -> Exhibit:
    """Makes an exhibit with the words of its kind.

    Args:
        kind: The kind of exhibit, in `templates/texts.toml`.
        figure: The picture, if there is one.
        rows: The table; rows of runs on other data may lack columns.
        name: The name of its files, by default the kind.
        **values: What is filled into title and caption.
    """
    words = _TEXTS["exhibits"][kind]
    return Exhibit(
        name=name or kind,
        title=_fill(words["title"], values),
        caption=_fill(words["caption"], values),
        figure=figure,
        rows=rows,
    )


def _fill(text: str, values: Mapping[str, object]) -> str:
    return " ".join(text.format(**values).split())


def show_run(
    analysis: RunAnalysis,
    kind: str,
    figure: Figure | None = None,
    rows: Sequence[Row] = (),
    *,
    suffix: str = "",
    **values: object,
) -> Exhibit:
    """Makes the exhibit `<run>_<kind><suffix>` of a run.

    Args:
        analysis: The run.
        kind: As for `make_exhibit`.
        figure: The picture, if there is one.
        rows: The table.
        suffix: The end of the name.
        **values: What is filled into title and caption, beside the `run`.
    """
    name = f"{to_file_name(analysis.name)}_{kind}{suffix}"
    values = {"run": analysis.name, **values}
    return make_exhibit(
        kind,
        figure,
        rows,
        name=name,
        **values,
    )


def list_points(
    analysis: RunAnalysis, columns: Mapping[str, ArrayLike]
) -> list[Row]:
    """Lists factors and split of every grid point beside other numbers.

    Args:
        analysis: The run.
        columns: Numbers [n] by the names of their columns.
    """
    splits = analysis.splits
    factors = analysis.dataset.space.name_values(splits.grid)
    table = pd.DataFrame(
        {
            **factors,
            "is_ood": splits.is_ood,
            **columns,
        }
    )
    rows: list[Any] = table.to_dict("records")
    return rows


def list_stages(
    analyses: Sequence[RunAnalysis], compute: Callable[[RunAnalysis, str], Row]
) -> list[Row]:
    """Lists a row for each stage of each run.

    Args:
        analyses: The runs.
        compute: Returns the columns of a stage, beside `run` and `stage`.
    """
    rows = []
    for analysis in analyses:
        for stage in analysis.stages:
            row = {"run": analysis.name, "stage": stage}
            rows.append(row | compute(analysis, stage))
    return rows


def draw_stage_rows(
    rows: Sequence[Row],
    panels: Mapping[str, str],
    ylabel: str,
    ylim: tuple[float, float] | None = None,
) -> Plot | None:
    """Draws columns of a table against the stage, a line a run.

    Args:
        rows: Rows with `run` and `stage`.
        panels: The columns to draw, by the titles of their panels.
        ylabel: The label of the axis.
        ylim: The ends of the axis, if they are fixed.
    """
    if not rows or not panels:
        return None
    table = pd.DataFrame(rows).set_index("stage")
    curves = {}
    for title, column in panels.items():
        for name, stages in table.groupby("run", sort=False):
            curves[title, str(name)] = stages[[column]].T.astype(float)
    return draw_stage_panels(curves, ylabel=ylabel, ylim=ylim)


def describe_runs(
    rows: Sequence[Row], describe: Callable[[Sequence[Row]], str]
) -> str:
    """Joins the findings of runs, which begin with the name of the run.

    Args:
        rows: The rows of a table, which has the rows of a run together.
        describe: Returns the finding of the rows of one run, or nothing.
    """
    findings = []
    for name, group in itertools.groupby(rows, lambda row: row["run"]):
        text = describe(list(group))
        if text:
            findings.append(f"{name}: {text}")
    if not findings:
        return ""
    text = "; ".join(findings[:MAX_NAMED])
    if len(findings) > MAX_NAMED:
        text += f"; and {len(findings) - MAX_NAMED} more"
    return f"{text}."


def describe_course(
    exhibits: Sequence[Exhibit],
    column: str,
    label: str,
) -> str:
    """Describes a number in the first and in the last stage of each run.

    Args:
        exhibits: Exhibits; the first one with the column is described.
        column: The column of the number.
        label: Its name in a sentence.
    """

    def describe(rows: Sequence[Row]) -> str:
        """Compares the first stage with the last; empty without two."""
        filled = [row for row in rows if row[column] is not None]
        if len(filled) < 2:
            return ""
        first = filled[0]
        last = filled[-1]
        return (
            f"{label} goes from {first[column]:.2f} ({first['stage']}) to "
            f"{last[column]:.2f} ({last['stage']})"
        )

    for exhibit in exhibits:
        if exhibit.rows and column in exhibit.rows[0]:
            return describe_runs(exhibit.rows, describe)
    return ""


def choose_sections(names: str | Sequence[str]) -> list[str]:
    """Returns the names in the order of a report; by default the usual ones.

    Args:
        names: Names of sections, in a list or separated by commas.

    Raises:
        ConfigError: If there is no such section.
    """
    sections = [*SECTIONS, *_USER_SECTIONS]
    if isinstance(names, str):
        names = split_names(names)
    if not names:
        names = list(set(sections).difference(ASKED_FOR))
    for name in names:
        if name not in sections:
            hint = suggest(name, sections)
            rule = f"must be among {', '.join(sections)}{hint}"
            raise ConfigError("sections", rule, name)
    return [name for name in sections if name in names]


def describe_sections() -> str:
    """Returns a line for each section: its name and content."""
    texts = dict(SECTIONS)
    for name in ASKED_FOR:
        texts[name] += " (when asked for)"
    for name, (section, _) in _USER_SECTIONS.items():
        texts[name] = section.introduction or section.title
    return "\n".join(map("{:14} {}".format, texts, texts.values()))


def register_section(
    name: str,
    *,
    title: str = "",
    text: str = "",
) -> Callable[[Function], Function]:
    """Registers a section of your own for reports; a decorator.

    The function takes a list of analyzed models, each with `name`, `dataset`,
    `evaluation`, `layers` and everything else that the sections of the report
    use, and returns a list of `tfcomp.Exhibit`: pictures and tables, which are
    also written beside the page. The section stands at the end of the report.

    Args:
        name: Letters, digits and underscores. Links and the files of the
            section's exhibits use it.
        title: The heading; by default the name.
        text: The question that the section answers, in a sentence or two.

    Raises:
        ValueError: If the name is invalid or taken.
    """
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(
            "the name of a section must be letters, digits and underscores, "
            f"got {name!r}"
        )

    def add(function: Function) -> Function:
        """Adds the section that the function fills."""
        section = Section(
            anchor=f"own_{name}",
            title=title or name,
            introduction=text,
            exhibits=[],
        )
        if name in _USER_SECTIONS:
            _, other = _USER_SECTIONS[name]
            if locate(other) != locate(function):
                raise ValueError(f"the section {name!r} is registered already")
        _USER_SECTIONS[name] = section, function
        return function

    return add


unregister_all = _USER_SECTIONS.clear


def make_user_sections(
    analyses: Sequence[RunAnalysis], names: Sequence[str]
) -> list[Section]:
    """Makes the registered sections; skips one that fails, with a note.

    Args:
        analyses: The runs.
        names: Sections that were chosen; built-in ones are not made.
    """
    sections = []
    for name in names:
        if name not in _USER_SECTIONS:
            continue
        section, function = _USER_SECTIONS[name]
        try:
            exhibits = function(list(analyses))
            exhibits = _name_exhibits(section.anchor, exhibits)
        except Exception as error:
            reason = describe_plugin_error(error)
            note = f"note: the section {name!r} is left out: {reason}"
            print(note, file=sys.stderr)
            continue
        sections.append(dataclasses.replace(section, exhibits=exhibits))
    return sections


def _name_exhibits(start: str, exhibits: Sequence[Any]) -> list[Exhibit]:
    """Puts a start before the names; ValueError if they are unusable."""
    renamed = {}
    for exhibit in exhibits:
        if not isinstance(exhibit, Exhibit):
            kind = type(exhibit).__name__
            rule = "must return a list of tfcomp.Exhibit"
            raise ValueError(f"{rule}, got {kind}")
        name = exhibit.name
        if name in renamed or "/" in name:
            rule = "must differ and have no /"
            raise ValueError(f"names of exhibits {rule}, got {name}")
        renamed[name] = dataclasses.replace(exhibit, name=f"{start}_{name}")
    return list(renamed.values())
