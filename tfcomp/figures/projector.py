"""Writes data of TensorBoard's embedding projector: the manifolds of figure 9b.

projector_config.pbtxt lies beside the event files, where TensorBoard looks for
it; projector/ has NN_stage.tsv and metadata.tsv, a point a line, and sprite.png
with all images, row by row from the top left.
"""

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from tensorboard.plugins.projector import ProjectorConfig

from tfcomp.config.errors import describe_refusal
from tfcomp.figures.image_files import arrange_channels, tile_images, to_bytes
from tfcomp.figures.pictures import title_points
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.storage.files import make_folder, write_atomically, write_text

CONFIG_FILE = "projector_config.pbtxt"  # the name is TensorBoard's
SUBFOLDER = "projector"
METADATA_FILE = f"{SUBFOLDER}/metadata.tsv"
SPRITE_FILE = f"{SUBFOLDER}/sprite.png"
# The browser's limit for the width and the height of a sprite.
MAX_SPRITE_SIZE = 8192
# A point of a convolution stage has 50,000 numbers, too many for a browser.
# From 50 on, the projector divides points by their lengths ("spherize").
MAX_COMPONENTS = 49


def write_projector(
    folder: Path,
    stages: Mapping[str, np.ndarray],
    metadata: pd.DataFrame,
    images: np.ndarray,
) -> Path:
    """Writes the points of stages beside the event files of a run.

    Args:
        folder: The folder with the event files.
        stages: Points [n, k] by stage.
        metadata: A row for each point; TensorBoard shows all columns.
        images: The images [n, H, W, C] of the points.

    Raises:
        FileNotFoundError: If there are no event files.
    """
    if not any(folder.glob("*tfevents*")):
        raise FileNotFoundError(f"{folder} has no event files")
    make_folder(folder / SUBFOLDER)

    _write_metadata(folder / METADATA_FILE, metadata)
    sprite, size = make_sprite(images)
    with write_atomically(folder / SPRITE_FILE) as partial:
        picture = Image.fromarray(sprite)
        picture.save(partial, "PNG")

    config = ProjectorConfig()
    named = enumerate(stages.items())
    for index, (stage, features) in named:
        safe = re.sub(r"[^\w.-]", "_", stage)  # a stage may be called block/1
        path = f"{SUBFOLDER}/{index:02d}_{safe}.tsv"
        # Text, since TensorBoard takes bytes for text as well when they happen
        # to be valid characters, which the zeros of a dead stage are.
        with write_atomically(folder / path) as partial:
            np.savetxt(
                partial,
                features,
                fmt="%.6g",
                delimiter="\t",
            )
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


def _write_metadata(path: Path, metadata: pd.DataFrame) -> None:
    # Names of levels may have tabs and lines of their own.
    cells = metadata.replace(r"\s+", " ", regex=True)
    text = cells.to_csv(
        sep="\t",
        index=False,
        float_format="%.6g",
        quoting=3,
    )
    write_text(path, text)


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
    order = list(components)
    for stage in order[-2:0:-1]:
        if components[stage].explained.any():
            order.remove(stage)
            order.insert(0, stage)
            break
    stages = {}
    for place, stage in enumerate(order, 1):
        features = components[stage].features
        stages[f"{place:02d} {stage}"] = features[:, :MAX_COMPONENTS]

    # TensorBoard labels points by the first column of words.
    points = title_points(analysis.dataset, np.arange(len(splits.grid)))
    values = analysis.dataset.space.name_values(splits.grid)
    columns: dict[str, Any] = {"point": points}
    columns.update(values)
    columns["split"] = np.where(splits.is_ood, "OOD", "ID")
    metadata = pd.DataFrame(columns)
    images = analysis.evaluation.images
    if analysis.dataset.first_row == "bottom":
        images = images[:, ::-1]

    try:
        write_projector(
            folder,
            stages,
            metadata,
            images,
        )
    except OSError as error:
        reason = describe_refusal(error)
        print(f"note: no data for the projector: {reason}", file=sys.stderr)


def make_sprite(images: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """Tiles images, thinned if they are too large.

    Args:
        images: Images [n, H, W, C] with the first row at the top.

    Returns:
        The sprite, uint8 [height, width, ...], and (width, height) of a tile.
    """
    side = math.sqrt(len(images))
    columns = math.ceil(side)  # nearly a square
    panels = arrange_channels(images)
    pixels = to_bytes(panels)
    longest = max(pixels.shape[1:3])
    thinning = math.ceil(longest * columns / MAX_SPRITE_SIZE)
    pixels = pixels[:, ::thinning, ::thinning]
    height, width = pixels.shape[1:3]
    sprite = tile_images(pixels, columns)
    return sprite, (width, height)
