"""Factor tables from folders: images with a CSV, Cars3D, and TFDS datasets."""

import csv
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_hash import find_prepared
from tfcomp.config.quiet import quiet_startup
from tfcomp.datasets.factor_table import FactorTable, LazyImages
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import describe_published, find_classes
from tfcomp.storage.files import read_json

FILE = "file"  # the column with the name of an image
TFDS_BATCH = 1024


def read_folder(path: str) -> FactorTable:
    """A table from a folder with one CSV file, or with the cars of Cars3D.

    The CSV has a column `file` and one per factor: numbers, or names, which
    are then categories in the order in which they occur. `angle:periodic` or
    `digit:categorical` as the head of a column says what it is.
    """
    folder = Path(path)
    cars, tables = sorted(folder.glob("*.mat")), sorted(folder.glob("*.csv"))
    if cars and not tables:
        return _read_cars(cars)
    if len(tables) != 1:
        rule = "must have one .csv file (or the .mat files of Cars3D)"
        raise TableError("the folder", rule, len(tables))
    with open(tables[0], newline="", encoding="utf-8-sig") as file:
        head, *rows = [row for row in csv.reader(file) if row] or [[]]
    heads = [name.strip().replace(" ", "_") for name in head]
    if FILE not in heads or len(heads) < 2 or not rows:
        rule = f"must have rows and columns {FILE} and one per factor"
        raise TableError(tables[0].name, rule, ",".join(heads) or "nothing")
    for number, row in enumerate(rows, 2):
        if len(row) != len(heads):
            rule = f"must have {len(heads)} columns in every row"
            got = f"{len(row)} in row {number}"
            raise TableError(tables[0].name, rule, got)
    columns = dict(zip(heads, zip(*rows, strict=True), strict=True))
    files = [folder / name.strip() for name in columns.pop(FILE)]
    if absent := [file for file in files if not file.is_file()]:
        rule = "must name images that are in the folder"
        got = f"{absent[0].relative_to(folder)} ({len(absent)} are absent)"
        raise TableError(tables[0].name, rule, got)
    return FactorTable(_find_pictures(files), **_read_columns(columns))


def _read_columns(columns: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    classes, described = [], []
    for head, cells in columns.items():
        name, _, kind = head.partition(":")
        texts = [cell.strip() for cell in cells]
        try:
            numbers = np.array(texts, float)[:, None]
        except ValueError:
            index = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            classes.append([index[text] for text in texts])
            described.append((name, kind or "categorical", None, list(index)))
        else:
            column, (values,) = find_classes(numbers)
            classes.append(column[:, 0])
            described.append((name, kind or "ordered", values, None))
    keys = ("names", "kinds", "values", "levels")
    options = dict(zip(keys, zip(*described, strict=True), strict=True))
    return {"classes": np.stack(classes, axis=1), **options}


def _find_pictures(files: list[Path]) -> LazyImages:
    first = _open_picture(files[0])
    shape = (len(files), *first.shape)

    def load() -> np.ndarray:
        images = np.empty(shape, np.uint8)
        for number, file in enumerate(files):
            image = _open_picture(file)
            if image.shape != first.shape:
                rule = f"must all be {list(first.shape)}"
                got = f"{list(image.shape)} in {file.name}"
                raise TableError("images", rule, got)
            images[number] = image
        return images

    return LazyImages(shape, first.dtype, load, lambda: first)


def _open_picture(file: Path) -> np.ndarray:
    """Rows, columns and, of a picture in color, red, green and blue."""
    import PIL.Image as pil

    bombs = pil.DecompressionBombError, pil.DecompressionBombWarning
    try:
        with warnings.catch_warnings(action="error"):
            opened = pil.open(file)
    except bombs as error:
        rule = f"must have at most {pil.MAX_IMAGE_PIXELS:,} pixels"
        raise TableError("images", rule, file.name) from error
    with opened as picture:
        if picture.mode[0] in "IF":
            rule = "must have 8 bits per channel"
            raise TableError("images", rule, f"{picture.mode} in {file.name}")
        is_gray = picture.mode in ("1", "L", "LA")
        return np.asarray(picture.convert("L" if is_gray else "RGB"))


def _read_cars(files: list[Path]) -> FactorTable:
    """Cars3D: a car is a file with `im`, [H, W, C, azimuth, elevation]."""
    import scipy.io

    def load_car(file: Path) -> np.ndarray:
        images = scipy.io.loadmat(file, variable_names=["im"]).get("im")
        if images is None or images.ndim != 5:
            raise TableError("im", "must have 5 dimensions", file.name)
        return images.transpose(4, 3, 0, 1, 2)

    first = load_car(files[0])
    sizes = (*first.shape[:2], len(files))  # elevation, azimuth, type
    count, pixels = int(np.prod(sizes)), first.shape[2:]

    def load() -> np.ndarray:
        images = np.empty((*sizes, *pixels), first.dtype)
        for number, file in enumerate(files):
            car = load_car(file)
            if car.shape != first.shape:
                rule = f"must be like that of {files[0].name}"
                raise TableError("im", rule, f"another shape in {file.name}")
            images[:, :, number] = car
        return images.reshape(count, *pixels)

    return FactorTable(
        LazyImages((count, *pixels), first.dtype, load, lambda: first[0, 0]),
        np.stack(np.unravel_index(np.arange(count), sizes), axis=1),
        names=["elevation", "azimuth", "type"],
        sizes=sizes,
        kinds=["ordered", "periodic", "categorical"],
        levels=[None, None, [file.stem for file in files]],
    )


def read_tfds(name: str, data_dir: str) -> FactorTable:
    """A table from a TFDS dataset with `image`, `label_*` and `value_*`.

    All images are read at once, since labels cannot be read without them.
    """
    folder = find_prepared(name, data_dir)
    check_features(folder)
    with quiet_startup():
        import tensorflow_datasets as tfds

        builder = tfds.builder_from_directory(folder)
    features = builder.info.features or {}
    labels = sorted(key for key in features if key.startswith("label_"))
    if not labels or "image" not in features:
        rule = "must be image, label_<factor> and value_<factor>"
        raise TableError("features", rule, ", ".join(features))
    pixels, count = features["image"], builder.info.splits["train"].num_examples
    factors, options = _describe(
        builder.name, [label.removeprefix("label_") for label in labels]
    )
    keys = [f"label_{factor}" for factor in factors]
    if has_values := all(f"value_{factor}" in features for factor in factors):
        keys += [f"value_{factor}" for factor in factors]
    images = np.empty((count, *pixels.shape), pixels.np_dtype)
    table = np.full((count, len(keys)), np.nan)
    # Small data sets are cached, which costs time here.
    batches = builder.as_dataset(
        split="train",
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding(
            dict.fromkeys(["image", *keys], True)
        ),
        read_config=tfds.ReadConfig(try_autocache=False),
    ).batch(TFDS_BATCH)
    start = 0
    for batch in batches.as_numpy_iterator():
        rows = slice(start, start + len(batch["image"]))
        images[rows] = batch["image"]
        table[rows] = np.stack([batch[key] for key in keys], axis=1)
        start = rows.stop
    classes = table[:, : len(factors)]
    values = table[:, len(factors) :] if has_values else None
    return FactorTable(images, classes, values, names=factors, **options)


def _describe(name: str, factors: list[str]) -> tuple[list, dict[str, Any]]:
    """Factors of a TFDS dataset in order, and what is known of each."""
    data = {"dsprites": "dSprites", "shapes3d": "3DShapes"}.get(name)
    known = describe_published(data) if data else {}
    synonyms = {"posX": "x_position", "posY": "y_position"}
    names = [synonyms.get(n, n) for n in known.pop("names", ())]
    if not set(factors) <= set(names):
        return factors, {}
    is_there = [name in factors for name in names]
    options = {
        key: list(itertools.compress(column, is_there))
        for key, column in known.items()
    }
    return list(itertools.compress(names, is_there)), options


TFDS_CODE = "tensorflow_datasets."
# Of a feature, as TFDS writes it, as Protocol Buffers also read it, and as
# TFDS wrote it once.
CLASS_KEYS = ("pythonClassName", "python_class_name", "type")


def check_features(folder: Path) -> None:
    """Refuses a TFDS dataset whose features are classes of others.

    TFDS imports the class that each feature names, so that a dataset of
    somebody else could run whatever lies in the current folder.
    """
    file = folder / "features.json"
    nodes: list[object] = [read_json(file)] if file.exists() else []
    while nodes:
        node = nodes.pop()
        if not isinstance(node, dict):
            nodes += node if isinstance(node, list) else []
            continue
        nodes += node.values()
        for name in filter(None, map(node.get, CLASS_KEYS)):
            # Elsewhere "type" is a word such as "int64".
            if "." in str(name) and not str(name).startswith(TFDS_CODE):
                rule = f"must be classes of {TFDS_CODE[:-1]}"
                raise TableError("features", rule, name)
