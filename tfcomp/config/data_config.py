"""The settings of a run that decide its examples."""

from dataclasses import dataclass

from tfcomp.config.data_files import hash_data
from tfcomp.config.settings import Settings, non_negative, setting


@dataclass(frozen=True)
class DataConfig(Settings):
    """The examples: factors, held-out region (OOD, the rest is ID), images."""

    dataset: str = setting(
        "gaussian_bumps", "Name of the dataset (see docs/experiments.md)."
    )
    region: str = setting(
        "square:6-22",
        "Factor combinations that training never sees, bounds inclusive: "
        "square:6-22, corner:14, cross:11-16, gap:x:10-16, box:x:6-22,y:0-9, "
        "diagonal:3, shape:heart, random:0.2, file:FILE.csv, montero:element, "
        "none, A|B, not:A and more.",
    )
    train_all: bool = setting(
        False, "Control: train on the region as well, but score it as held out."
    )
    grid_size: int = setting(
        28,
        "Pixels along a side, and values of x and y.",
        minimum=4,
        maximum=1024,
    )
    sigma: float = setting(
        1.0, "Standard deviation of a bump (px).", minimum=0.001, maximum=1024.0
    )
    polarity: str = setting(
        "dark",
        "A bump of 1 on a ground of 0 (bright), or of 0 on 1 (dark).",
        choices=("bright", "dark"),
    )
    coordinates: str = setting(
        "grid",
        "Training positions: cells of the grid, or uniform outside the region.",
        choices=("grid", "continuous"),
    )
    num_train: int = non_negative(
        0, "Training examples; 0 takes as many as cells outside the region."
    )
    num_bumps: int = non_negative(
        0, "Number of bumps outside the region that are mixed with the stripes."
    )
    num_angles: int = setting(
        1000,
        "Rotated digits: images from 0 to 360 degrees, both included.",
        minimum=4,
        maximum=10**5,
    )
    digit_source: str = setting(
        "mnist",
        "Rotated digits: MNIST (through TFDS), or strokes that need no data.",
        choices=("mnist", "stand_in"),
    )
    digit_class: int = non_negative(4, "Rotated digits: the digit.", maximum=9)
    digit_classes: str = setting(
        "", "Rotated digits: several, as 0,1,4; the digit is a second factor."
    )
    digit_index: int = non_negative(
        0, "Rotated digits: index of the image in its class, in TFDS's order."
    )
    sprite_sizes: str = setting(
        "3,3,6,8,8",
        "Sprites: numbers of values of shape, scale, orientation, x, y and, as "
        "a sixth number, hue. One value leaves a factor out.",
    )
    sprite_shapes: str = setting(
        "square,ellipse,heart",
        "Sprites: shapes, the first ones of which are used. A square and an "
        "ellipse look the same after a half turn; heart, triangle and l look "
        "different at every angle.",
    )
    composition: str = setting(
        "sum",
        "Composed: how the images of the two objects are put together.",
        choices=("sum", "product", "occlusion"),
    )
    num_positions: int = setting(
        6, "Composed: places along each axis.", minimum=2, maximum=1024
    )
    noise: float = non_negative(
        0.0,
        "Standard deviation of Gaussian noise on training images, fixed for "
        "each; scores refer to images without it.",
        maximum=1024.0,
    )
    balance: bool = setting(
        False, "Repeat training images of rare values by how rare they are."
    )
    data: str = setting(
        "", "Dataset table: a file, a folder or tfds:NAME (see docs/data.md)."
    )
    factors: str = setting(
        "",
        "Dataset table: columns that are factors, as shape,x or x:continuous; "
        "by default all. Images of a combination differ in the other columns.",
    )
    correlation: str = setting(
        "",
        "Correlate factors in training: a,b:0.4 draws images with a weight of "
        "exp(-(a - b)^2 / (2 0.4^2)), both scaled to 0..1. Several are "
        "separated by semicolons.",
    )
    data_hash: str = setting(
        "", "Hash of the content of --data, set by tfcomp."
    )
    data_dir: str = setting(
        "", "Folder of TFDS data; default TFDS_DATA_DIR, else TFDS's default."
    )
    examples_dir: str = setting(
        "", "Read training images that tfcomp materialize wrote to this folder."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data and not self.data_hash:
            digest = hash_data(self.data, self.data_dir)
            object.__setattr__(self, "data_hash", digest)
