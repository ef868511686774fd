"""Which sections a report has; needs no TensorFlow.

The function of a built-in one takes the runs and returns a `Section`, without
exhibits where it does not apply. Those that users register follow.
"""

import dataclasses
import difflib
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tfcomp.config.errors import ConfigError, describe_plugin_error
from tfcomp.config.registry import locate
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis

Function = TypeVar("Function", bound=Callable)

# In which `..._section` the function `make_<name>` is, and what it shows.
SECTIONS = {
    "explorer": ("", "what was drawn at every combination, by hovering"),
    "errors": ("error", "maps of the error, all scores"),
    "gaps": ("gap", "interpolation across a held-out range"),
    "superposition": (
        "kernel",
        "whether held-out outputs are sums of memories",
    ),
    "kernels": ("kernel", "similarities of outputs beside ideal kernels"),
    "layers": ("layer", "geometry and probes by stage"),
    "interactions": (
        "interaction",
        "interactions of factors, similarity of stages",
    ),
    "tuning": ("interaction", "how additive units are"),
    "manifolds": ("manifold", "principal components"),
    "umap": ("manifold", "UMAP of every stage"),
    "embeddings": ("manifold", "embeddings in pixel space"),
    "runs": ("run", "settings, coverage, flags"),
}
# It takes half a minute.
ASKED_FOR = ("umap",)
# Title, text and function of those of users, from models to exhibits.
_OWN: dict[str, tuple[str, str, Callable]] = {}


def choose_sections(names: Sequence[str]) -> list[str]:
    """The sections of a report in their order; by default the usual ones.

    Raises:
        ConfigError: If there is no such section.
    """
    known = [*SECTIONS, *_OWN]
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
    """The names of all sections, a line each, and what they show."""
    texts = {name: about for name, (_, about) in SECTIONS.items()}
    for name in ASKED_FOR:
        texts[name] += " (when asked for)"
    texts |= {name: text or title for name, (title, text, _) in _OWN.items()}
    return "\n".join(f"{name:14} {about}" for name, about in texts.items())


def find_section(name: str) -> Callable[[Sequence[Any]], Section]:
    """The function that makes a built-in section."""
    module = f"tfcomp.report.{SECTIONS[name][0]}_section"
    return getattr(importlib.import_module(module), f"make_{name}")


def register_section(
    name: str, *, title: str = "", text: str = ""
) -> Callable[[Function], Function]:
    """Registers a section of your own for reports; a decorator.

    The function takes a list of measured models, each with `name`, `dataset`,
    `evaluation`, `layers` and all else that the sections of the report look
    at, and returns a list of `tfcomp.Exhibit`: pictures and tables, which are
    also written beside the page. The section stands at the end of the report.

    Args:
        name: Of the section: letters, digits and underscores. Links call it
            so, and files of its exhibits begin with it.
        title: Its heading; by default the name.
        text: What it asks, in a sentence or two.

    Raises:
        ValueError: If the name is no such word, or is taken.
    """
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(
            "the name of a section must be letters, digits and underscores, "
            f"got {name!r}"
        )

    def add(function: Function) -> Function:
        known = _OWN.get(name)
        if known and locate(known[2]) != locate(function):
            raise ValueError(f"the section {name!r} is registered already")
        _OWN[name] = (title or name, text, function)
        return function

    return add


def forget_own() -> None:
    """Takes back all registered sections."""
    _OWN.clear()


def make_own_sections(
    analyses: Sequence["RunAnalysis"], names: Sequence[str]
) -> list[Section]:
    """Registered sections; one that fails is left out, which is said."""
    found = []
    for name, (title, text, function) in _OWN.items():
        if name not in names:
            continue
        try:
            exhibits = list(function(list(analyses)))
            _check(exhibits)
        except Exception as error:
            where = describe_plugin_error(error)
            reason = where or f"{type(error).__name__}: {error}"
            reason = " ".join(reason.split())
            note = f"note: the section {name!r} is left out: {reason}"
            print(note, file=sys.stderr)
            continue
        anchor = f"own_{name}"
        named = [
            dataclasses.replace(e, name=f"{anchor}_{e.name}") for e in exhibits
        ]
        found.append(Section(anchor, title, text, named))
    return found


def _check(exhibits: Sequence[Any]) -> None:
    for exhibit in exhibits:
        if not isinstance(exhibit, Exhibit):
            kind = type(exhibit).__name__
            raise ValueError(
                f"must return a list of tfcomp.Exhibit, got {kind}"
            )
    names = [exhibit.name for exhibit in exhibits]
    if len(set(names)) < len(names):
        raise ValueError(f"names of exhibits must differ, got {names}")
