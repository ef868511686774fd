"""The explorer: what every model drew at every combination, by hovering."""

from collections.abc import Sequence

from tfcomp.evaluation.study import Study


def explorer_fragment(studies: Sequence[Study]) -> str:
    """HTML for the top of a page, with all that it needs inside.

    Empty where there is nothing to explore.
    """
    return ""
