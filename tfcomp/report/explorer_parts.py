"""Sprites, packed numbers in the order of the grid, and stages."""

import io
import itertools
import math
from typing import Any

import numpy as np
from PIL import Image

from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import tile_images
from tfcomp.figures.image_rows import arrange_channels
from tfcomp.report.page import encode

Data = dict[str, Any]


class Sprite:
    """Images of one size in one picture; equal ones are one tile."""

    def __init__(self, upright: bool) -> None:
        self._upright = upright
        self._tiles: dict[bytes, int] = {}
        self._shape: tuple[int, ...] = ()

    def add(self, images: np.ndarray) -> list[int]:
        """Adds images [n, H, W, C], clipped to 0..1; returns their tiles."""
        shown = np.nan_to_num(arrange_channels(images), posinf=1.0, neginf=0.0)
        pixels = np.round(shown.clip(0, 1) * 255).astype(np.uint8)
        self._shape = pixels.shape[1:]
        if not self._upright:
            pixels = pixels[:, ::-1]
        return [
            self._tiles.setdefault(tile.tobytes(), len(self._tiles))
            for tile in pixels
        ]

    def to_data(self) -> Data:
        """Returns a PNG data URL, and the size and the columns of its tiles."""
        (height, width, *_), count = self._shape, len(self._tiles)
        columns = math.isqrt(max(count - 1, 0)) + 1
        tiles = np.frombuffer(b"".join(self._tiles), np.uint8)
        sheet = tile_images(tiles.reshape(count, *self._shape), columns)
        file = io.BytesIO()
        Image.fromarray(sheet).save(file, "PNG")
        url = f"data:image/png;base64,{encode(file.getvalue())}"
        return {"size": (width, height), "columns": columns, "sprite": url}


def describe_stage(analysis: RunAnalysis, stage: str) -> Data:
    """Describes maps of units of a stage, and its metric tensors."""
    numbers, maps = analysis.shown_units[stage]
    finite = np.nan_to_num(maps)
    low = finite.min(axis=1, initial=np.inf, keepdims=True)
    high = finite.max(axis=1, initial=-np.inf, keepdims=True)
    described = {
        "name": stage,
        "units": numbers.tolist(),
        "ranges": round_numbers(np.hstack([low, high])),
        "maps": _pack(divide(finite - low, high - low), 255),
    }
    if analysis.dataset.space.ordered:
        described |= _describe_metrics(analysis, stage)
    return described


def _describe_metrics(analysis: RunAnalysis, stage: str) -> Data:
    """Describes lengths per level along ordered factors, and their cosines.

    Lengths are shares of `longest`, 0 to 255; cosines -1 to 1 are 0 to 254.
    Columns of pairs are in the order of `itertools.combinations`.
    """
    space, metrics = analysis.dataset.space, analysis.metrics[stage]
    steps = np.array([space.factors[i].step for i in space.ordered])
    metrics = np.nan_to_num(metrics) * steps[:, None] * steps
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2).clip(0))
    cosines = [
        divide(metrics[:, a, b], lengths[:, a] * lengths[:, b])
        for a, b in itertools.combinations(range(len(steps)), 2)
    ]
    longest = float(lengths.max(initial=0.0))
    return {
        "log_volume": round_numbers(analysis.log_volume[stage]),
        "lengths": _pack(lengths / (longest or 1.0), 255),
        "longest": longest,
        "cosines": [_pack((c + 1) / 2, 254) for c in cosines],
    }


def divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divides values; 0 / 0 is 0, and another value over 0 is infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(values == 0, 0.0, values / by)


def _pack(values: np.ndarray, top: int) -> str:
    whole = np.round(np.nan_to_num(values).clip(0, 1) * top)
    return encode(whole.astype(np.uint8).tobytes())


def round_numbers(values: np.ndarray) -> list:
    """Rounds to four digits, with None for numbers that are not finite."""
    if np.ndim(values) > 1:
        return [round_numbers(row) for row in values]
    return [
        float(f"{v:.4g}") if math.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]
