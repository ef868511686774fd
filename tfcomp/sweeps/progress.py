"""Lines about the trials or searches that end."""

import time


class Progress:
    """Prints a line for every trial or search that ends."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._failed = total, 0, 0
        self._start = time.monotonic()

    def report(self, name: str, seconds: float, reason: str) -> None:
        """Prints the item that ended, and the reason if it failed."""
        self._done += 1
        self._failed += bool(reason)
        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * (self._total - self._done)
        rest = f"about {format_seconds(left)} left"
        if not left:
            rest = f"all in {format_seconds(elapsed)}"
        failed = f"{self._failed} failed, " if self._failed else ""
        why = f"  FAILED: {reason}" if reason else ""
        place = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        took = format_seconds(seconds)
        print(f"{place} {name}  {took}{why}  ({failed}{rest})", flush=True)


def format_seconds(seconds: float) -> str:
    """Formats a duration as `48 s`, `12 min` or `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
