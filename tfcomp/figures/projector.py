"""Writes data of TensorBoard's embedding projector: the manifolds of figure 9b.

projector_config.pbtxt lies beside the event files, where TensorBoard looks for
it; projector/ has NN_stage.tsv and metadata.tsv, a point a line, and sprite.png
with all images, row by row from the top left. "Color by" multiplies an image by
its color, so that images have no tint: their frame shows the first factor.
"""

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
from matplotlib import colormaps
from numpy.typing import ArrayLike
from tensorboard.plugins.projector import ProjectorConfig

from tfcomp.config.errors import describe_refusal
from tfcomp.figures.exhibits import arrange_channels, tile_images
from tfcomp.figures.pictures import title_points
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.storage.files import make_folder, write_text, write_whole

CONFIG_FILE = "projector_config.pbtxt"  # the name is TensorBoard's
SUBFOLDER = "projector"
METADATA_FILE = f"{SUBFOLDER}/metadata.tsv"
SPRITE_FILE = f"{SUBFOLDER}/sprite.png"
# The browser's limit for the width and the height of a sprite.
MAX_SPRITE_SIZE = 8192
FRAME = 1 / 8  # of the longer side of an image
# A point of a convolution stage has 50,000 numbers, too many for a browser.
# From 50 on, the projector divides points by their lengths ("spherize").
MAX_COMPONENTS = 49


def write_projector(
    folder: Path,
    stages: Mapping[str, np.ndarray],
    metadata: Mapping[str, ArrayLike],
    images: np.ndarray,
    frames: np.ndarray,
) -> Path:
    """Writes stages [n, k], metadata [n] and images [n, H, W, ...] of a run.

    Frames of images show numbers [n] by color; NaN is as the least one.
    """
    if not any(folder.glob("*tfevents*")):
        raise FileNotFoundError(f"{folder} has no event files")
    make_folder(folder / SUBFOLDER)
    lines = [metadata, *zip(*map(np.ravel, metadata.values()), strict=True)]
    cells = ["\t".join(map(_format_cell, line)) + "\n" for line in lines]
    write_text(folder / METADATA_FILE, "".join(cells))
    sprite, size = make_sprite(arrange_channels(images), frames)
    with write_whole(folder / SPRITE_FILE) as partial:
        matplotlib.image.imsave(partial, sprite)
    config = ProjectorConfig()
    for index, (stage, features) in enumerate(stages.items()):
        safe = re.sub(r"[^\w.-]", "_", stage)  # a stage may be called block/1
        path = f"{SUBFOLDER}/{index:02d}_{safe}.tsv"
        # Text, since TensorBoard takes bytes for text as well when they happen
        # to be valid characters, which the zeros of a dead stage are.
        with write_whole(folder / path) as partial:
            np.savetxt(partial, features, fmt="%.6g", delimiter="\t")
        embedding = config.embeddings.add(
            tensor_name=stage,
            tensor_path=path,
            tensor_shape=features.shape,
            metadata_path=METADATA_FILE,
        )
        embedding.sprite.image_path = SPRITE_FILE
        embedding.sprite.single_image_dim.extend(size)
    write_text(folder / CONFIG_FILE, str(config))
    return folder / CONFIG_FILE


def write_projections(analysis: RunAnalysis) -> None:
    """Writes the stages of a run for TensorBoard's projector."""
    folder, analysis = analysis.run.path, analysis.for_pairs
    if folder is None:
        return
    splits, pixels = analysis.splits, analysis.evaluation.images
    upright = analysis.dataset.first_row == "bottom"
    # TensorBoard sorts by name and opens on the first. The last inner stage
    # with any variance shows most; the code looks the same in every run.
    components = analysis.components
    inner = [s for s in [*components][1:-1] if components[s].explained.any()]
    order = dict.fromkeys([*inner[-1:], *components])
    shown = {
        f"{place:02d} {stage}": components[stage].features[:, :MAX_COMPONENTS]
        for place, stage in enumerate(order, 1)
    }
    # TensorBoard labels points by the first column of words.
    labels: dict[str, Any] = {
        "point": title_points(analysis.dataset, np.arange(len(splits.grid))),
        **analysis.dataset.space.name_values(splits.grid),
        "split": np.where(splits.is_ood, "OOD", "ID"),
    }
    images = pixels if upright else pixels[:, ::-1]
    try:
        write_projector(folder, shown, labels, images, splits.grid[:, 0])
    except OSError as error:
        reason = describe_refusal(error)
        print(f"note: no data for the projector: {reason}", file=sys.stderr)


def make_sprite(
    images: np.ndarray, frames: np.ndarray
) -> tuple[np.ndarray, tuple[int, int]]:
    """Returns framed images, thinned if too large, in one, and their size."""
    columns = math.ceil(math.sqrt(len(images)))  # nearly a square
    room = (MAX_SPRITE_SIZE // columns - 2) / (1 + 2 * FRAME)
    thinning = math.ceil(max(images.shape[1:3]) / room)
    images = images[:, ::thinning, ::thinning][:, ::-1]  # upright
    if images.ndim == 3:
        images = np.stack([images] * 3, axis=-1)
    count, height, width, _ = images.shape
    edge = math.ceil(FRAME * max(height, width))
    low, high = np.nanmin(frames), np.nanmax(frames)
    shares = np.nan_to_num((frames - low) / max(high - low, 1e-9))
    framed = np.empty((count, height + 2 * edge, width + 2 * edge, 3))
    framed[:] = colormaps["plasma"](shares)[:, None, None, :3]
    framed[:, edge:-edge, edge:-edge] = np.nan_to_num(images).clip(0, 1)
    sprite = tile_images(np.rint(255 * framed).astype(np.uint8), columns)
    return sprite, framed.shape[2:0:-1]


def _format_cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return " ".join(str(value).split())  # no tab and no line of its own
