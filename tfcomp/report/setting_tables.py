"""Rows of numbers, and which runs can share a picture."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.evaluation.study import Study


def list_points(
    study: Study, columns: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """One row per grid point: its factors, whether it is OOD, numbers [n]."""
    names = study.dataset.space.names
    return [
        {
            **dict(zip(names, map(float, point), strict=True)),
            "is_ood": bool(study.splits.is_ood[index]),
            **{name: float(values[index]) for name, values in columns.items()},
        }
        for index, point in enumerate(study.splits.grid)
    ]


def group_by_space(studies: Sequence[Study]) -> list[list[Study]]:
    """Runs with a map on the same factors and region, together."""
    groups: dict[tuple, list[Study]] = {}
    for study in studies:
        if study.has_map:
            key = (study.dataset.space, study.dataset.region.spec)
            groups.setdefault(key, []).append(study)
    return list(groups.values())
