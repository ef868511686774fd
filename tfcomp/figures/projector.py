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

import matplotlib.image
import numpy as np
import pandas as pd
from matplotlib import colormaps
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
    metadata: pd.DataFrame,
    images: np.ndarray,
    frames: np.ndarray,
) -> Path:
    """Writes the points of stages beside the event files of a run.

    Args:
        folder: The folder with the event files.
        stages: Points [n, k] by stage.
        metadata: A row for each point; TensorBoard shows all columns.
        images: The images [n, H, W, ...] of the points.
        frames: Numbers [n] that the frames of images show by color; NaN is
            shown as the least of them.

    Raises:
        FileNotFoundError: If there are no event files.
    """
    if not any(folder.glob("*tfevents*")):
        raise FileNotFoundError(f"{folder} has no event files")
    make_folder(folder / SUBFOLDER)
    lines = [list(metadata), *metadata.itertuples(index=False)]
    rows = ["\t".join(map(_format_cell, line)) for line in lines]
    write_text(folder / METADATA_FILE, "\n".join(rows) + "\n")
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
    folder = analysis.run.path
    if folder is None:
        return
    analysis = analysis.for_pairs
    splits = analysis.splits
    components = analysis.components
    # TensorBoard sorts by name and opens on the first. The last inner stage
    # with any variance shows most; the code looks the same in every run.
    varying = [s for s in [*components][1:-1] if components[s].explained.any()]
    order = dict.fromkeys([*varying[-1:], *components])
    stages = {
        f"{place:02d} {stage}": components[stage].features[:, :MAX_COMPONENTS]
        for place, stage in enumerate(order, 1)
    }
    # TensorBoard labels points by the first column of words.
    points = title_points(analysis.dataset, np.arange(len(splits.grid)))
    metadata = pd.DataFrame(
        {
            "point": points,
            **analysis.dataset.space.name_values(splits.grid),
            "split": np.where(splits.is_ood, "OOD", "ID"),
        }
    )
    images = analysis.evaluation.images
    if analysis.dataset.first_row == "top":
        images = images[:, ::-1]
    try:
        write_projector(folder, stages, metadata, images, splits.grid[:, 0])
    except OSError as error:
        reason = describe_refusal(error)
        print(f"note: no data for the projector: {reason}", file=sys.stderr)


def make_sprite(
    images: np.ndarray, frames: np.ndarray
) -> tuple[np.ndarray, tuple[int, int]]:
    """Tiles framed images, thinned if they are too large.

    Args:
        images: Images [n, H, W] or [n, H, W, 3] with the first row at the
            bottom.
        frames: Numbers [n] that the colors of the frames show.

    Returns:
        The sprite, uint8 [height, width, 3], and (width, height) of a tile.
    """
    columns = math.ceil(math.sqrt(len(images)))  # nearly a square
    max_side = (MAX_SPRITE_SIZE // columns - 2) / (1 + 2 * FRAME)
    thinning = math.ceil(max(images.shape[1:3]) / max_side)
    images = images[:, ::thinning, ::thinning]
    images = images[:, ::-1]  # upright
    if images.ndim == 3:
        images = np.stack([images] * 3, axis=-1)

    low = np.nanmin(frames)
    high = np.nanmax(frames)
    shares = np.nan_to_num((frames - low) / max(high - low, 1e-9))
    colors = colormaps["plasma"](shares)[:, :3]
    count, height, width, _ = images.shape
    edge = math.ceil(FRAME * max(height, width))
    framed = np.empty((count, height + 2 * edge, width + 2 * edge, 3))
    framed[:] = colors[:, None, None]
    framed[:, edge:-edge, edge:-edge] = np.nan_to_num(images).clip(0, 1)
    sprite = tile_images(np.rint(255 * framed).astype(np.uint8), columns)
    return sprite, (width + 2 * edge, height + 2 * edge)


def _format_cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return " ".join(str(value).split())  # no tab and no line of its own
