"""Gradient boosting of a few trees, which takes a tenth of the time."""

import functools
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a model of scikit-learn with ten trees, as DCI then does."""
    from sklearn.ensemble import GradientBoostingClassifier

    few_trees = functools.partial(GradientBoostingClassifier, n_estimators=10)
    monkeypatch.setattr(
        "sklearn.ensemble.GradientBoostingClassifier", few_trees
    )
    return few_trees
