"""Which sections a report has; needs no TensorFlow.

A built-in one is a function `make_...` of a module `..._section` that takes
the runs and returns a `Section`, without exhibits where it does not apply.
Those that users register follow.
"""

import difflib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.report.own_sections import list_own

# Where the function is, and what it shows.
SECTIONS = {
    "explorer": ("", "what was drawn at every combination, by hovering"),
    "errors": ("error_section.make_errors", "maps of the error, all scores"),
    "gaps": (
        "gap_section.make_curves",
        "interpolation across a held-out range",
    ),
    "superposition": (
        "superposition_section.make_superposition",
        "whether held-out outputs are sums of memories",
    ),
    "kernels": (
        "kernel_section.make_kernels",
        "similarities of outputs beside ideal kernels",
    ),
    "layers": ("layer_section.make_layers", "geometry and probes by stage"),
    "interactions": (
        "interaction_section.make_interactions",
        "interactions of factors, similarity of stages",
    ),
    "tuning": ("tuning_section.make_tuning", "how additive units are"),
    "manifolds": ("manifold_section.make_manifolds", "principal components"),
    "umap": ("manifold_section.make_umaps", "UMAP of every stage"),
    "embeddings": (
        "embedding_section.make_embeddings",
        "embeddings in pixel space",
    ),
    "runs": ("run_section.make_runs", "settings, coverage, flags"),
}
# It takes half a minute.
ASKED_FOR = ("umap",)


def choose_sections(names: Sequence[str]) -> list[str]:
    """The sections of a report in their order; by default the usual ones.

    Raises:
        ConfigError: If there is no such section.
    """
    known = [*SECTIONS, *list_own()]
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
    texts |= {
        f"{n}": f"{t} (when asked for)"
        for n, t in texts.items()
        if n in ASKED_FOR
    }
    texts |= list_own()
    return "\n".join(f"{name:14} {about}" for name, about in texts.items())


def find_section(name: str) -> Callable[[Sequence[Any]], Any]:
    """The function that makes a built-in section."""
    module, _, function = SECTIONS[name][0].partition(".")
    return getattr(importlib.import_module(f"tfcomp.report.{module}"), function)
