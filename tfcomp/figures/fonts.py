"""Fonts for names that matplotlib's default font lacks, and fonts in PDFs."""

import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from matplotlib import font_manager
from matplotlib.text import Text

BOXES = "Last Resort High-Efficiency"  # a font of matplotlib, for any letter
# Tables of a font that tell how to place letters and which to join.
SHAPING_TABLES = ["GDEF", "GPOS", "GSUB", "kern"]


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


@contextlib.contextmanager
def embed_outlines() -> Iterator[None]:
    """Makes PDFs embed fonts without tables for shaping text.

    A PDF says where each letter is, and has no use for these tables. To reduce
    them to the letters of a figure takes longer than all other tables.
    """
    from fontTools import subset  # here: other formats need none

    full_options = subset.Options

    def make_options(**options: Any) -> subset.Options:
        outlines = full_options(**options)
        outlines.drop_tables += SHAPING_TABLES
        return outlines

    subset.Options = make_options
    try:
        yield
    finally:
        subset.Options = full_options
