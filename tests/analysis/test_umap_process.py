"""UMAP has a process of its own, and its end is not that of ours."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tfcomp.analysis.umap_process import embed_elsewhere

FAKE = """
import os, sys

class UMAP:
    def __init__(self, **_):
        pass
    def fit_transform(self, features):
        print("a library says something")
        assert sys.modules["tensorflow"] is None
        if features[0, 0] == 7:
            print("LLVM ERROR: inconsistency", file=sys.stderr, flush=True)
            os.abort()
        return features[:, :2] + os.getpid()
"""


@pytest.fixture(autouse=True)
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "umap.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)


def test_one_process_serves_all() -> None:
    points = np.arange(20, dtype=np.float32).reshape(5, 4)
    first, second = embed_elsewhere([points, points + 1])
    np.testing.assert_array_equal(second, first + 1)
    assert (first[0, 0] - points[0, 0]) not in (0, os.getpid())
    assert not sys.modules.get("umap")


def test_its_end_is_an_error_of_one_line() -> None:
    points = np.full((5, 4), 7, np.float32)
    with pytest.raises(OSError, match="ended: LLVM ERROR: inconsistency"):
        embed_elsewhere([points])
    assert len(embed_elsewhere([points + 1])[0]) == 5


def test_absent_umap(tmp_path: Path) -> None:
    (tmp_path / "umap.py").write_text("raise ImportError('no UMAP here')")
    with pytest.raises(OSError, match="ended: ImportError: no UMAP here"):
        embed_elsewhere([np.eye(5, dtype=np.float32)])
