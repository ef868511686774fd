"""Progress bars: redrawn on a terminal, rarely written to a log file."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def show_progress(
    items: Iterable[Any] | None, name: str, unit: str, total: int, **options
) -> tqdm:
    """A bar on standard error over items; without any, updated by hand.

    Unless options of tqdm say otherwise, it vanishes when it is done, and is
    never seen if that takes less than two seconds (in a log file, thirty).
    """
    pause = 0.1 if sys.stderr.isatty() else 30.0
    options = {"leave": False, "delay": max(2.0, pause)} | options
    options |= {"mininterval": pause, "dynamic_ncols": True}
    return tqdm(items, desc=name, unit=unit, total=total, **options)
