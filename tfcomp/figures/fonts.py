"""Fonts for names in scripts that matplotlib's default font lacks."""

import contextlib
import functools
import sys
from collections.abc import Iterable

from matplotlib import font_manager
from matplotlib.text import Text

BOXES = "Last Resort High-Efficiency"  # a font of matplotlib, for any letter


def add_fonts(texts: Iterable[Text]) -> None:
    """Adds an installed font to texts whose own font lacks letters.

    Where no font has them, a line on standard error says so, once.
    """
    missing = {}
    for text in texts:
        path = font_manager.findfont(text.get_fontproperties())
        missing[text] = _find_missing(path, text.get_text())
    letters = frozenset("").union(*missing.values())
    if not letters:
        return

    family = find_family(letters)
    for text in texts:
        if missing[text]:
            text.set_fontfamily([*text.get_fontfamily(), family, BOXES])


def _find_missing(path: str, letters: Iterable[str]) -> set[str]:
    """Returns those of some letters, but for spaces, that a font lacks."""
    font = font_manager.get_font(path)
    missing = set()
    for letter in letters:
        if not (letter.isspace() or font.get_char_index(ord(letter))):
            missing.add(letter)
    return missing


@functools.cache
def find_family(letters: frozenset[str]) -> str:
    """Finds the installed family that lacks the fewest of some letters."""
    missing: dict[str, set[str]] = {}
    for entry in font_manager.fontManager.ttflist:
        if entry.name != BOXES:
            with contextlib.suppress(OSError):  # a font that was removed
                lost = _find_missing(entry.fname, letters)
                missing[entry.name] = missing.get(entry.name, lost) & lost

    family = min(sorted(missing), key=lambda name: len(missing[name]))
    if missing[family]:
        say_boxes()
    return family


@functools.cache
def say_boxes() -> None:
    """Says, once, that figures lack letters."""
    note = "note: figures have boxes for letters that no installed font has"
    print(f"{note} (Debian's fonts-noto-cjk has Chinese)", file=sys.stderr)
