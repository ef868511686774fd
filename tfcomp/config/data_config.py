"""The settings of a run that decide its examples."""

from dataclasses import dataclass

from tfcomp.config.data_hash import hash_data
from tfcomp.config.settings import Settings, non_negative, setting


@dataclass(frozen=True)
class DataConfig(Settings):
    """The examples: factors, held-out region, rendering.

    "ID" (in distribution) are the factor combinations outside of the
    held-out region, "OOD" (out of distribution) those inside.
    """

    dataset: str = setting(
        "gaussian_bumps",
        "Name of the dataset (docs/experiments.md lists them).",
    )
    region: str = setting(
        "square:6-22",
        "Factor combinations that training never sees, bounds inclusive: "
        "square:6-22, corner:14, cross:11-16, gap:x:10-16, "
        "box:x:6-22,y:0-9, diagonal:3, shape:heart, random:0.2, "
        "file:FILE.csv, montero:element, none, A|B, not:A and more.",
    )
    train_all: bool = setting(
        False,
        "Train on the combinations of the region as well, and score them as "
        "if they were held out: the control of a test that describes how "
        "networks fail.",
    )
    grid_size: int = setting(
        28,
        "Pixels along one side of the image, which is also the number of "
        "values of x and of y.",
        minimum=4,
        maximum=1024,
    )
    sigma: float = setting(
        1.0,
        "Standard deviation of a bump, in pixels.",
        minimum=0.001,
        maximum=1024.0,
    )
    polarity: str = setting(
        "dark",
        "Whether a bump is 1 on a background of 0 (bright), or 0 on a "
        "background of 1 (dark).",
        choices=("bright", "dark"),
    )
    coordinates: str = setting(
        "grid",
        "Training positions: the cells of the grid, or continuous positions "
        "drawn uniformly outside the region.",
        choices=("grid", "continuous"),
    )
    num_train: int = non_negative(
        0,
        "Number of training examples; 0 takes all cells outside the region, "
        "or as many continuous positions.",
    )
    num_bumps: int = non_negative(
        0, "Number of bumps outside the region that are mixed with the stripes."
    )
    num_angles: int = setting(
        1000,
        "Rotated digits: number of images from 0 to 360 degrees inclusive, "
        "so that the first is also the last.",
        minimum=4,
        maximum=10**5,
    )
    digit_source: str = setting(
        "mnist",
        "Rotated digits: images from MNIST (through TFDS), or drawn strokes "
        "that need no data, for a first try (stand_in).",
        choices=("mnist", "stand_in"),
    )
    digit_class: int = non_negative(
        4, "Rotated digits: the digit that is shown.", maximum=9
    )
    digit_classes: str = setting(
        "",
        "Rotated digits: several digits, as in 0,1,4; the digit is then a "
        "second factor, and --digit_class is ignored.",
    )
    digit_index: int = non_negative(
        0,
        "Rotated digits: which training example of its class is shown, in "
        "the order of TFDS.",
    )
    sprite_sizes: str = setting(
        "3,3,6,8,8",
        "Sprites: numbers of values of shape, scale, orientation, x and y; "
        "with a sixth number there are as many hues. One value leaves a factor "
        "out.",
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
        6,
        "Composed: places of an object along each axis of the image.",
        minimum=2,
        maximum=1024,
    )
    noise: float = non_negative(
        0.0,
        "Standard deviation of Gaussian noise on training images, a pattern "
        "of its own on each that never changes; scores refer to images "
        "without it.",
        maximum=1024.0,
    )
    balance: bool = setting(
        False,
        "Draw training images of rare values more often, so that all values "
        "of a factor are seen about equally often.",
    )
    data: str = setting(
        "",
        "File or folder that the dataset table reads, or tfds:NAME "
        "(docs/data.md has the formats).",
    )
    factors: str = setting(
        "",
        "Columns of the dataset table that are factors, as shape,x or "
        "x:continuous; combinations then have several images, which differ in "
        "the other columns. By default all.",
    )
    correlation: str = setting(
        "",
        "Correlate factors in training: a,b:0.4 draws images with a weight of "
        "exp(-(a - b)^2 / (2 0.4^2)), both scaled to 0..1. Several are "
        "separated by semicolons.",
    )
    data_hash: str = setting(
        "",
        "Hash of the content of --data. It is recorded, so that a run does "
        "not continue with other data; you need not give it.",
    )
    data_dir: str = setting(
        "",
        "Folder of TFDS data; by default that of the variable "
        "TFDS_DATA_DIR, or else of TFDS itself.",
    )
    examples_dir: str = setting(
        "",
        "Read the training images that tfcomp materialize wrote to "
        "this folder, with the same bits; by default they are rendered.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data and not self.data_hash:
            digest = hash_data(self.data, self.data_dir)
            object.__setattr__(self, "data_hash", digest)
