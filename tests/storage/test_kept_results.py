"""Results kept beside a run: equal, of one version, and never damaged."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tfcomp.storage.files import PARTIAL
from tfcomp.storage.kept_results import KeptResults


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class Found:
    images: np.ndarray
    scores: dict[str, dict[str, float | None]]
    shape: tuple[int, ...]
    pair: Pair | None = None


FOUND = Found(
    np.arange(12, dtype=np.float32).reshape(3, 4),
    {"id": {"mse": 0.1, "nothing": None}, "ood": {"mse": np.float32(2)}},
    (3, 4),
    Pair(np.array([True, False]), np.array([np.nan, np.inf])),
)
CLASSES = {"Found": Found, "Pair": Pair}


def keep(folder: Path, version: str = "1") -> KeptResults:
    return KeptResults(folder / "kept", version, CLASSES)


def forbid() -> Any:
    raise AssertionError("computed again")


def test_what_is_kept_is_what_was_computed(tmp_path: Path) -> None:
    assert keep(tmp_path).get("found", lambda: FOUND) is FOUND
    again = keep(tmp_path).get("found", forbid)
    assert isinstance(again, Found) and isinstance(again.pair, Pair)
    assert again.scores == FOUND.scores and again.shape == (3, 4)
    assert again.images.dtype == np.float32
    np.testing.assert_array_equal(again.images, FOUND.images)
    for ours, theirs in zip(again.pair, FOUND.pair, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_another_version_is_computed_again(tmp_path: Path) -> None:
    keep(tmp_path).get("n", lambda: 1)
    assert keep(tmp_path, "2").get("n", lambda: 2) == 2
    assert keep(tmp_path, "2").get("n", forbid) == 2
    assert keep(tmp_path).get("n", lambda: 1) == 1


def flip(content: bytes) -> bytes:
    """Changes bytes of an array, whose length stays."""
    place = content.index(FOUND.images.tobytes()[4:]) + 8
    return content[:place] + b"\xff\xfe" + content[place + 2 :]


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda content: content[:-40],
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"not an archive",
        lambda content: content.replace(b"Found", b"Other"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    keep(tmp_path).get("found", lambda: FOUND)
    path = tmp_path / "kept" / "found.npz"
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    calls = []
    keep(tmp_path).get("found", lambda: calls.append(1) or FOUND)
    assert calls
    np.testing.assert_array_equal(
        keep(tmp_path).get("found", forbid).images, FOUND.images
    )


def test_who_is_killed_leaves_what_was_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path).get("n", lambda: 1)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("numpy.savez", die)
        keep(tmp_path, "2").get("n", lambda: 2)
    assert keep(tmp_path).get("n", forbid) == 1
    assert not [*(tmp_path / "kept").glob(f"{PARTIAL}*")]


def test_where_nothing_can_be_written_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    assert keep(tmp_path).get("n", lambda: 1) == 1
