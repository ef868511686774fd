"""Where runs are looked for, and what is said meanwhile."""

from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.storage import run_search
from tfcomp.storage.run_search import find_runs


@pytest.mark.parametrize("pattern", ["/", "//", "/proc", "/*", "/sys/../."])
def test_the_whole_machine_is_not_looked_through(pattern: str) -> None:
    """Before, a minute of lines on what may not be read."""
    with pytest.raises(ConfigError, match="--runs must not match /"):
        find_runs([pattern])


def test_a_long_search_says_where_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    (tmp_path / "below").mkdir()
    assert find_runs([str(tmp_path)]) == []
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(run_search, "SAY_SECONDS", -1)
    find_runs([str(tmp_path)])
    assert f"looking for runs in {tmp_path}/below\n" in capsys.readouterr().err
