"""Few trees and few permutations, which take a part of the time."""

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


@pytest.fixture
def few_permutations(monkeypatch: pytest.MonkeyPatch):
    """Lets chance levels be means over few random orders."""
    package = "tfcomp.representations"
    monkeypatch.setattr(f"{package}.additivity.NUM_PERMUTATIONS", 2)
    monkeypatch.setattr(f"{package}.samples.PERMUTATIONS", 5)
