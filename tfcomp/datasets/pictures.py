"""Pictures in files as the images of a factor table."""

import warnings
from pathlib import Path

import numpy as np

from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_images import LazyImages

# Pillow also opens formats that start other programs (EPS).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
BLACK, WHITE = 0, 255


def find_pictures(files: list[Path]) -> LazyImages:
    """Returns pictures of one size; transparent pixels show a background.

    It is black, or white if the pictures would be equal on black.
    """
    first, _ = _open_picture(files[0], BLACK)
    notes: list[str] = []

    def load() -> np.ndarray:
        images, is_clear = _read_pictures(files, BLACK)
        background = "black"
        if is_clear and (images == images[0]).all():
            background, (images, _) = "white", _read_pictures(files, WHITE)
        if is_clear:
            notes[:] = [f"transparent pixels of pictures are {background}"]
        return images

    return LazyImages((len(files), *first.shape), first.dtype, load, notes)


def _read_pictures(
    files: list[Path], background: int
) -> tuple[np.ndarray, bool]:
    """Returns all pictures, and True if any has transparent pixels."""
    opened = [_open_picture(file, background) for file in files]
    shape = opened[0][0].shape
    for file, (image, _) in zip(files, opened, strict=True):
        if image.shape != shape:
            got = f"{list(image.shape)} in {file.name}"
            raise TableError("images", f"must all be {list(shape)}", got)
    return np.stack([image for image, _ in opened]), any(c for _, c in opened)


def _open_picture(file: Path, background: int) -> tuple[np.ndarray, bool]:
    """Returns the pixels, and True if some of them are transparent."""
    import PIL.Image as pil

    try:
        # Pillow warns of large pictures and refuses larger ones.
        with warnings.catch_warnings(action="ignore"):
            opened = pil.open(file, formats=FORMATS)
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
            if np.asarray(layers)[..., 3].min() < WHITE:
                color = (background, background, background, WHITE)
                below = pil.new("RGBA", picture.size, color)
                flat = pil.alpha_composite(below, layers).convert("RGB")
                return np.asarray(flat.convert(mode)), True
        return np.asarray(picture.convert(mode)), False
