"""Examples in docstrings of public functions, executed."""

import doctest

import numpy as np
import pytest

import tfcomp

WITH_EXAMPLES = [
    "FactorTable",
    "describe_run",
    "evaluate",
    "read_runs",
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name: str) -> None:
    found = getattr(tfcomp, name)
    names = {"tfcomp": tfcomp, "np": np}
    (test,) = (
        test
        for test in doctest.DocTestFinder().find(found, name, globs=names)
        if test.name == name
    )
    assert test.examples
    result = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE
    ).run(test)
    assert result.failed == 0
