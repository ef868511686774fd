"""Sections of the report that users have registered."""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tfcomp.config.errors import describe_plugin_error
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section

if TYPE_CHECKING:
    from tfcomp.evaluation.study import Study

Function = TypeVar("Function", bound=Callable)


@dataclass(frozen=True)
class OwnSection:
    """A section, and the function from models to its exhibits."""

    name: str
    title: str
    text: str
    function: Callable[[Sequence[Any]], Sequence[Exhibit]]


_SECTIONS: dict[str, OwnSection] = {}


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
        known = _SECTIONS.get(name)
        if known is not None and _where(known.function) != _where(function):
            raise ValueError(f"the section {name!r} is registered already")
        _SECTIONS[name] = OwnSection(name, title or name, text, function)
        return function

    return add


def forget_own() -> None:
    """Takes back all registered sections."""
    _SECTIONS.clear()


def list_own() -> dict[str, str]:
    """The registered sections by name, and what they ask."""
    return {name: own.text or own.title for name, own in _SECTIONS.items()}


def make_own_sections(
    studies: Sequence["Study"], names: Sequence[str]
) -> list[Section]:
    """Registered sections; one that fails is left out, which is said."""
    found = []
    for own in (own for name, own in _SECTIONS.items() if name in names):
        try:
            exhibits = list(own.function(list(studies)))
            _check(exhibits)
        except Exception as error:
            where = describe_plugin_error(error)
            reason = where or f"{type(error).__name__}: {error}"
            reason = " ".join(reason.split())
            print(
                f"note: the section {own.name!r} is left out: {reason}",
                file=sys.stderr,
            )
            continue
        named = [_rename(exhibit, own.name) for exhibit in exhibits]
        found.append(Section(f"own_{own.name}", own.title, own.text, named))
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


def _rename(exhibit: Exhibit, section: str) -> Exhibit:
    """The exhibit with a file name that no other section has."""
    return dataclasses.replace(exhibit, name=f"own_{section}_{exhibit.name}")


def _where(function: Callable) -> str:
    return f"{function.__module__}:{function.__qualname__}"
