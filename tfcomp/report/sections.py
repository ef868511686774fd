"""Names of the sections of a report, and sections that users register.

`report_build.MAKERS` has the functions of the built-in ones; this module needs
no TensorFlow.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tfcomp.config.errors import ConfigError, describe_plugin_error
from tfcomp.config.registry import locate
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis

Function = TypeVar("Function", bound=Callable[..., Sequence[Exhibit]])

SECTIONS = {
    "explorer": "images of every combination, on an interactive map",
    "representations": "embeddings and encoders as sums of parts",
    "readings": "factors that a reader finds in outputs",
    "errors": "maps of the error, all scores",
    "gaps": "interpolation across a held-out range",
    "superposition": "held-out outputs as sums of training outputs",
    "kernels": "similarities of outputs beside ideal kernels",
    "layers": "geometry and probes by stage",
    "interactions": "interactions of factors, similarity of stages",
    "tuning": "additive share of the variance of units",
    "manifolds": "principal components",
    "umap": "UMAP of every stage",
    "embeddings": "embeddings in pixel space",
    "runs": "settings, coverage, flags",
}
# Sections that take half a minute.
ASKED_FOR = ("umap",)


@dataclasses.dataclass(frozen=True)
class UserSection:
    """A registered section, whose function maps analyses to exhibits."""

    title: str
    text: str
    function: Callable[[list[RunAnalysis]], Sequence[Exhibit]]


_USER_SECTIONS: dict[str, UserSection] = {}


def choose_sections(names: Sequence[str]) -> list[str]:
    """Returns the names in the order of a report; by default the usual ones.

    Raises:
        ConfigError: If there is no such section.
    """
    known = [*SECTIONS, *_USER_SECTIONS]
    if not names:
        return [name for name in known if name not in ASKED_FOR]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" (do you mean {near[0]}?)" if near else ""
            rule = f"must be among {', '.join(known)}{hint}"
            raise ConfigError("sections", rule, name)
    return [name for name in known if name in names]


def describe_sections() -> str:
    """Returns a line for each section: its name and content."""
    texts = {
        name: f"{text} (when asked for)" if name in ASKED_FOR else text
        for name, text in SECTIONS.items()
    }
    texts |= {n: own.text or own.title for n, own in _USER_SECTIONS.items()}
    return "\n".join(f"{name:14} {text}" for name, text in texts.items())


def register_section(
    name: str, *, title: str = "", text: str = ""
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
        known = _USER_SECTIONS.get(name)
        if known and locate(known.function) != locate(function):
            raise ValueError(f"the section {name!r} is registered already")
        _USER_SECTIONS[name] = UserSection(title or name, text, function)
        return function

    return add


unregister_all = _USER_SECTIONS.clear


def make_user_sections(
    analyses: Sequence[RunAnalysis], names: Sequence[str]
) -> list[Section]:
    """Makes the registered sections; skips one that fails, with a note."""
    sections = []
    for name in filter(_USER_SECTIONS.__contains__, names):
        own = _USER_SECTIONS[name]
        try:
            exhibits = _name_exhibits(name, own.function(list(analyses)))
        except Exception as error:
            reason = describe_plugin_error(error)
            note = f"note: the section {name!r} is left out: {reason}"
            print(note, file=sys.stderr)
        else:
            anchor = f"own_{name}"
            sections.append(Section(anchor, own.title, own.text, exhibits))
    return sections


def _name_exhibits(section: str, exhibits: Sequence[Any]) -> list[Exhibit]:
    """Puts the section before the names; ValueError if they are unusable."""
    named = {}
    for exhibit in exhibits:
        if not isinstance(exhibit, Exhibit):
            kind = type(exhibit).__name__
            raise ValueError(
                f"must return a list of tfcomp.Exhibit, got {kind}"
            )
        if exhibit.name in named:
            rule = "names of exhibits must differ"
            raise ValueError(f"{rule}, got {exhibit.name!r} twice")
        name = f"own_{section}_{exhibit.name}"
        named[exhibit.name] = dataclasses.replace(exhibit, name=name)
    return list(named.values())
