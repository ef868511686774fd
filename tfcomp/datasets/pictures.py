"""Pictures in files as the images of a factor table."""

import warnings
from pathlib import Path

import numpy as np

from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_images import LazyImages

# All that is read. Pillow also opens formats that start other programs (EPS).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
BLACK, WHITE = 0, 255


def find_pictures(files: list[Path]) -> LazyImages:
    """Returns pictures of one size; transparent pixels show a ground.

    The ground is black, or white where pictures would be equal on black.
    """
    first, _ = _open_picture(files[0], BLACK)
    notes: list[str] = []

    def load() -> np.ndarray:
        images, is_clear = _read_pictures(files, BLACK)
        ground = "black"
        if is_clear and (images == images[0]).all():
            ground, (images, _) = "white", _read_pictures(files, WHITE)
        if is_clear:
            notes[:] = [f"transparent pixels of pictures are {ground}"]
        return images

    shape = (len(files), *first.shape)
    return LazyImages(shape, first.dtype, load, notes)


def _read_pictures(files: list[Path], ground: int) -> tuple[np.ndarray, bool]:
    """Returns all pictures, and True if any has transparent pixels."""
    first, is_clear = _open_picture(files[0], ground)
    images = np.empty((len(files), *first.shape), np.uint8)
    for number, file in enumerate(files):
        image, has_clear = _open_picture(file, ground)
        if image.shape != first.shape:
            rule = f"must all be {list(first.shape)}"
            got = f"{list(image.shape)} in {file.name}"
            raise TableError("images", rule, got)
        images[number] = image
        is_clear = is_clear or has_clear
    return images, is_clear


def _open_picture(file: Path, ground: int) -> tuple[np.ndarray, bool]:
    """Returns rows, columns and, of a picture in color, red, green and blue.

    The second value is True if pixels are transparent and show the ground.
    """
    import PIL.Image as pil

    bombs = pil.DecompressionBombError, pil.DecompressionBombWarning
    try:
        with warnings.catch_warnings(action="error"):
            opened = pil.open(file, formats=FORMATS)
    except bombs as error:
        rule = f"must have at most {pil.MAX_IMAGE_PIXELS:,} pixels"
        raise TableError("images", rule, file.name) from error
    except pil.UnidentifiedImageError as error:
        rule = f"must be {', '.join(FORMATS)}"
        raise TableError("images", rule, file.name) from error
    with opened as picture:
        if picture.mode[0] in "IF":
            rule = "must have 8 bits per channel"
            raise TableError("images", rule, f"{picture.mode} in {file.name}")
        mode = "L" if picture.mode in ("1", "L", "LA") else "RGB"
        if "A" in picture.getbands() or "transparency" in picture.info:
            layers = picture.convert("RGBA")
            if layers.getextrema()[3][0] < WHITE:
                color = (ground, ground, ground, WHITE)
                below = pil.new("RGBA", picture.size, color)
                shown = pil.alpha_composite(below, layers).convert("RGB")
                return np.asarray(shown.convert(mode)), True
        return np.asarray(picture.convert(mode)), False
