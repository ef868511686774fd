"""The weights of a published model: an `.npz` archive of numbers alone.

Its members are 000.npy, 001.npy, ..., in the order of Keras's `get_weights`,
float32 or float16. What an archive says of itself is compared with the model
that it is for before memory is taken, and no pickle is opened.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence

import numpy as np

from tfcomp.config.errors import RunError

TYPES = ("float32", "float16")
HEADER_BYTES = 4096  # of a member, at most


def format_weights(weights: Sequence[np.ndarray], dtype: str) -> bytes:
    """The archive, the same bytes for the same weights; RunError if a number is
    not finite."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, values in enumerate(weights):
            name, member = _name(number), io.BytesIO()
            with np.errstate(over="ignore"):
                stored = np.ascontiguousarray(values, dtype)
            _check_finite(stored, name)
            np.lib.format.write_array(member, stored.reshape(values.shape))
            # Without the time of writing.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue(), compresslevel=9)
    return content.getvalue()


def count_numbers(content: bytes) -> int:
    """How many numbers an archive can have, by its table of contents; RunError
    if it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return sum(info.file_size for info in archive.infolist()) // 2
    except Exception as error:  # whatever a damaged file leads to
        raise _damaged("is no .npz archive") from error


def parse_weights(
    content: bytes, shapes: Sequence[tuple[int, ...]]
) -> list[np.ndarray]:
    """The weights of a model whose variables have these shapes, float32;
    RunError if the archive is damaged or another one, or a number is not
    finite."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [_name(number) for number in range(len(shapes))]
            if archive.namelist() != names:
                rule = f"must have {len(shapes)} arrays, 000.npy and so on"
                raise _damaged(rule)
            return [
                _read_member(archive, name, tuple(shape))
                for name, shape in zip(names, shapes, strict=True)
            ]
    except RunError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _damaged(f"cannot be read ({reason[:200]})") from error


def _read_member(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]
) -> np.ndarray:
    size = math.prod(shape)
    if archive.getinfo(name).file_size > HEADER_BYTES + 4 * size:
        raise _damaged(f"must have {size:,} numbers in {name}")
    with archive.open(name) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise _damaged(f"must have NumPy's format 1.0 in {name}")
        found, is_turned, dtype = np.lib.format.read_array_header_1_0(file)
        if found != shape or dtype.str not in ("<f4", "<f2"):
            rule = f"must have {' or '.join(TYPES)} {list(shape)} in {name}"
            raise _damaged(f"{rule}, got {dtype} {list(found)}")
        if is_turned:
            raise _damaged(f"must have C's order in {name}")
        values = np.frombuffer(file.read(), dtype).reshape(shape)
    _check_finite(values, name)
    return values.astype(np.float32)


def _check_finite(values: np.ndarray, name: str) -> None:
    if not np.isfinite(values).all():
        raise _damaged(f"must have finite numbers alone in {name}")


def _name(number: int) -> str:
    return f"{number:03d}.npy"


def _damaged(rule: str) -> RunError:
    return RunError(f"weights.npz {rule}")
