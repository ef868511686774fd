"""Progress bars: seen on a terminal, quiet in a log file."""

import io
import sys

import pytest

from tfcomp.config.quiet import show_progress


@pytest.mark.parametrize("terminal", [True, False])
def test_bars(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(show_progress(range(3), "layers", "stage", 3)) == [0, 1, 2]
    assert stream.getvalue().strip() == ""  # too short to be shown
    bar = show_progress(range(3), "layers", "stage", 3, delay=0, leave=True)
    assert bar.mininterval == (0.1 if terminal else 30.0)
    list(bar)
    assert "layers: 100%" in stream.getvalue()
