"""The settings of one run: data, model, training, and output folders.

Frozen dataclasses that check themselves: an object that exists is valid.
The flags of `tfcomp train` are these fields (see `run_flags`).
"""

import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.hashes import hash_data
from tfcomp.config.settings import (
    Settings,
    non_negative,
    read_own,
    setting,
    split_names,
)

# Output location and bookkeeping; they do not change the results.
LOCATION_FLAGS = (
    "run_name log_dir export_dir data data_dir examples_dir resume overwrite "
    "pictures export keep_outputs"
).split()

# What `--help` lists, since a first user changes it; `--helpfull` has all.
COMMON_FLAGS = (
    "dataset region grid_size data factors image_size "
    "model encoding depth width "
    "epochs steps_per_epoch batch_size learning_rate seed "
    "run_name log_dir export_dir eval_every layerwise_every resume overwrite"
).split()

# Parts that read a flag, for `used_by`.
_DIGITS = "rotated_digits"
_TABLE = "table"
_COMPOSED = "additive product low_rank_product occlusion slots"
_RENDERED = "low_rank hard_rendering"
_PIXELWISE = "coordinate film attention transformer"
_DEEP = f"mlp cnn broadcast {_PIXELWISE} {_COMPOSED} {_RENDERED}"
_WIDE = (
    f"mlp cnn rotation broadcast burgess kim {_PIXELWISE} {_COMPOSED} "
    "hard_rendering"
)


@dataclass(frozen=True)
class DataConfig(Settings):
    """The examples: factors, held-out region (OOD, the rest is ID), images."""

    dataset: str = setting("gaussian_bumps", "The dataset.")
    region: str = setting(
        "square:6-22",
        "Factor combinations that training never sees, bounds inclusive: "
        "square:6-22, corner:14, cross:11-16, gap:x:10-16, box:x:6-22,y:0-9, "
        "diagonal:3, shape:heart, random:0.2, montero:element, "
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
        used_by="gaussian_bumps stripes rotated_digits sprites composed",
    )
    sigma: float = setting(
        1.0,
        "Standard deviation of a bump (px).",
        minimum=0.001,
        maximum=1024.0,
        used_by="gaussian_bumps stripes bump",
    )
    polarity: str = setting(
        "dark",
        "A bump of 1 on a ground of 0 (bright), or of 0 on 1 (dark).",
        choices=("bright", "dark"),
        used_by="gaussian_bumps stripes",
    )
    coordinates: str = setting(
        "grid",
        "Training positions: cells of the grid, or uniform outside the region.",
        choices=("grid", "continuous"),
    )
    num_train: int = non_negative(
        0, "Training examples; 0 takes one for each cell outside the region."
    )
    num_bumps: int = non_negative(
        0,
        "Number of bumps outside the region that are mixed with the stripes.",
        used_by="stripes gaussian_bumps",
    )
    num_angles: int = setting(
        1000,
        "Rotated digits: images from 0 to 360 degrees, both included.",
        minimum=4,
        maximum=10**5,
        used_by=_DIGITS,
    )
    digit_source: str = setting(
        "mnist",
        "Rotated digits: MNIST (through TFDS), or strokes that need no data.",
        choices=("mnist", "stand_in"),
        used_by=_DIGITS,
    )
    digit_class: int = non_negative(
        4,
        "Rotated digits: the digit.",
        maximum=9,
        used_by=_DIGITS,
    )
    digit_classes: str = setting(
        "",
        "Rotated digits: several, as 0,1,4; the digit is a second factor.",
        used_by=_DIGITS,
    )
    digit_index: int = non_negative(
        0,
        "Rotated digits: index of the image in its class, in TFDS's order.",
        used_by=_DIGITS,
    )
    sprite_sizes: str = setting(
        "3,3,6,8,8",
        "Sprites: numbers of values of shape, scale, orientation, x, y and, as "
        "a sixth number, hue. One value leaves a factor out.",
        used_by="sprites",
    )
    sprite_shapes: str = setting(
        "square,ellipse,heart",
        "Sprites: shapes; the first ones are used. A square and an "
        "ellipse look the same after a half turn; heart, triangle and l look "
        "different at every angle.",
        used_by="sprites",
    )
    composition: str = setting(
        "sum",
        "Composed: how the images of the two objects are put together.",
        choices=("sum", "product", "occlusion"),
        used_by="composed",
    )
    num_positions: int = setting(
        6,
        "Composed: places along each axis.",
        minimum=2,
        maximum=1024,
        used_by="composed",
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
        used_by=_TABLE,
    )
    ignore: str = setting(
        "",
        "Dataset table: columns that are left out, as id,path.",
        used_by=_TABLE,
    )
    image_size: int = non_negative(
        0,
        "Dataset table: scale all images to this number of rows and columns; "
        "0 leaves them as they are.",
        maximum=4096,
        used_by=_TABLE,
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
        "", "Read training images that --materialize wrote to this folder."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data and not self.data_hash:
            digest = hash_data(self.data, self.data_dir)
            object.__setattr__(self, "data_hash", digest)


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The decoder, and the code of the factors that it is given."""

    model: str = setting("cnn", "The decoder.")
    encoding: str = setting("bump", "The input code of the factors.")
    depth: int = setting(
        4,
        "Hidden layers after the first stage.",
        minimum=1,
        maximum=1000,
        used_by=_DEEP,
    )
    width: int = setting(
        64,
        "Channels or units of a layer.",
        minimum=1,
        maximum=2**16,
        used_by=_WIDE,
    )
    code_width: float = non_negative(
        0.0,
        "Bump code: standard deviation of the tuning of a unit, in grid steps; "
        "0 takes the width of the bump (--sigma).",
        maximum=1e6,
        used_by="bump",
    )
    ramp_range: str = setting(
        "signed",
        "Ramp code: scale a factor to [-1, 1] (signed) or [0, 1] (unit), or "
        "keep its value (raw; the published form, which underfits).",
        choices=("signed", "unit", "raw"),
        used_by="ramp",
    )
    absent_value: float = setting(
        0.0,
        "Ramp code: number in place of an absent factor.",
        minimum=-1e30,
        used_by="ramp",
    )
    groups: str = setting(
        "",
        "Composed models, attention: factors of each object, front to back, as "
        "in x_a+y_a,x_b+y_b; by default one each. Acting: by default all.",
        used_by=f"{_COMPOSED} attention acting",
    )
    patch_size: int = non_negative(
        0,
        "Transformer: rows and columns of pixels of a token; 0 takes the "
        "fewest that leave at most 784 tokens.",
        used_by="transformer",
    )
    interaction_weight: float = non_negative(
        0.0,
        "Attention: weight of the penalty that a pixel sees several tokens.",
        used_by="attention",
    )
    rank: int = setting(
        32,
        "Low-rank model: the largest rank of an embedding matrix. "
        "Low-rank product: the number of products.",
        minimum=1,
        used_by=f"{_RENDERED} low_rank_product",
    )
    entropy_weight: float = non_negative(
        0.1,
        "Low-rank model: weight alpha of the entropy penalty.",
        used_by=_RENDERED,
    )
    variance_weight: float = non_negative(
        0.01,
        "Low-rank model: weight beta of the variance penalty.",
        used_by=_RENDERED,
    )
    penalty_basis: str = setting(
        "raw",
        "Low-rank model: take the variance of the raw parameters, as "
        "published, or of the unit vectors that are in use.",
        choices=("raw", "unit"),
        used_by=_RENDERED,
    )
    penalty_reduction: str = setting(
        "sum",
        "Low-rank model: sum or average the penalties over the matrices.",
        choices=("sum", "mean"),
        used_by=_RENDERED,
    )
    axes: str = setting(
        "find",
        "Hard rendering: find the image axis of every factor, or say it, as "
        "in x:columns,y:rows, where the profile of a value of x has a number "
        "for every column; find and none (a low-rank matrix) work as well.",
        used_by="hard_rendering",
    )
    axis_weight: float = non_negative(
        1e-4,
        "Hard rendering: weight of the penalty that one axis survives.",
        used_by="hard_rendering",
    )
    channels: str = setting(
        "all",
        "Acting: what factors do: x, y, angle, size, template, color.",
        used_by="acting",
    )
    candidates: int = setting(
        8,
        "Acting: trainings side by side; the shortest description is kept.",
        minimum=1,
        maximum=1000,
        used_by="acting",
    )
    shrink: float = non_negative(
        0.1,
        "Acting: how fast a factor loses the channels that it does not need, "
        "in units of the learning rate.",
        used_by="acting",
    )
    channel_price: float = non_negative(
        0.002,
        "Acting: training error that a channel of a factor must save.",
        used_by="acting",
    )
    prune_below: float = non_negative(
        0.2,
        "Hard rendering: an axis is pruned, and the penalty of its factor "
        "ends, if its profiles are shorter than this share of the other ones.",
        maximum=1.0,
        used_by="hard_rendering",
    )


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Optimization."""

    epochs: int = setting(50, "Number of epochs.", minimum=1, maximum=10**6)
    steps_per_epoch: int = non_negative(
        0, "Batches in an epoch; 0 means one pass over the training examples."
    )
    batch_size: int = setting(
        32, "Examples in a batch, over all replicas.", minimum=1, maximum=10**5
    )
    learning_rate: float = setting(1e-3, "Learning rate of AdamW.", above=0.0)
    decay: str = setting(
        "none",
        "Let the learning rate fall to 0 over the last steps: not at all, "
        "along a line, or along half a period of a cosine.",
        choices=("none", "linear", "cosine"),
    )
    decay_share: float = setting(
        0.2, "Share of all steps in which it falls.", above=0.0, maximum=1.0
    )
    adam_epsilon: float = setting(
        1e-7, "Epsilon of AdamW; the published code has 1e-8.", above=0.0
    )
    weight_decay: float = non_negative(0.01, "Decoupled weight decay of AdamW.")
    l1_weight: float = non_negative(
        0.0, "Weight of the absolute error that is added to the squared error."
    )
    clip_norm: float = non_negative(
        0.0, "Largest norm of the whole gradient; 0 means no limit."
    )
    plateau_patience: int = non_negative(
        0,
        "Halve the learning rate after more than this number of epochs "
        "without a lower training loss; 0 means never.",
    )
    seed: int = non_negative(
        0, "Seed of data, initial weights and batches.", maximum=2**31 - 1
    )
    id_target: float = non_negative(
        0.0,
        "Start a training again, from another seed, if it ends with an ID "
        "relative MSE above this; 0 means never.",
    )
    restarts: int = non_negative(
        3,
        "With --id_target: how often. The lowest ID error wins.",
        maximum=1000,
    )
    precision: str = setting(
        "float32",
        "Arithmetic of the hidden layers.",
        choices=("float32", "mixed_bfloat16"),
    )
    num_replicas: int = non_negative(
        0,
        "Replicas that share a batch; 0 means one on every GPU, or on the CPU.",
        maximum=1024,
    )
    compiled: str = setting(
        "auto",
        "Run the steps up to the next evaluation as one program of XLA: "
        "always, never, or (auto) on one GPU, where the training images fit "
        "into a quarter of its memory.",
        choices=("auto", "always", "never"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay != "none" and self.plateau_patience:
            rule = "must be none with --plateau_patience"
            raise ConfigError("decay", rule, self.decay)


@dataclass(frozen=True)
class RunConfig(Settings):
    """All settings of one run; `tfcomp.describe_run` makes one from flags.

    `setting` gives each number and text its meaning, which `--help` shows.

    Attributes:
        data: Images, factors and held-out combinations.
        model: The decoder and its codes.
        training: Loss, optimizer, steps, seed and devices.
        own: Flags of plugins.
    """

    run_name: str = setting("donut", "Name of the run and of its folders.")
    log_dir: str = setting("tensorboard_logs", "Folder of run folders.")
    export_dir: str = setting("saved_models", "Folder of SavedModels.")
    export: bool = setting(
        True, "Write a SavedModel for inference when the run ends."
    )
    eval_every: int = non_negative(
        1, "Epochs between ID and OOD scores; 0 means only at the end."
    )
    eval_points: int = non_negative(
        4096,
        "Most combinations that are scored and analyzed; of more, a sample is "
        "taken, half of it held out. 0 scores all, and analyzes 4096.",
    )
    layerwise_every: int = non_negative(
        10,
        "Epochs between layerwise geometry, probes and pictures; 0 means only "
        "at the end.",
    )
    checkpoint_seconds: float = non_negative(
        10.0, "Save a checkpoint after an epoch if the last one is older."
    )
    pictures: bool = setting(
        True,
        "Draw images into TensorBoard: a third of the time of a short run.",
    )
    keep_outputs: int = non_negative(
        0,
        "Number of epochs, evenly spread over the training, whose outputs are "
        "kept for a slider in the report; the last one is the trained network.",
    )
    resume: bool = setting(
        False,
        "Go on with an interrupted run, which ends bit-identical to an "
        "uninterrupted one.",
    )
    overwrite: bool = setting(
        False, "Replace the run of this name; its SavedModels stay as versions."
    )
    plugins: str = setting(
        "", "Python modules, separated by commas, that register own parts."
    )
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    # Of plugins. A hash of settings needs no part that can change.
    own: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self.run_name
        # A shell runs files in hidden folders, such as ~/.bashrc.d.
        if not name or name.startswith(".") or set(name) & set("/\\\0,"):
            rule = (
                "must be a plain name without a path or a comma, and begin "
                "with no dot"
            )
            raise ConfigError("run_name", rule, name)
        if self.overwrite and self.resume:
            rule = "must not be combined with --resume, which sweeps add"
            raise ConfigError("overwrite", rule, True)
        batch = self.training.batch_size
        replicas = max(self.training.num_replicas, 1)
        if batch % replicas:
            rule = f"must be a multiple of --num_replicas={replicas}"
            raise ConfigError("batch_size", rule, batch)

    @property
    def run_dir(self) -> str:
        """`<log_dir>/<run_name>`."""
        return os.path.join(self.log_dir, self.run_name)

    @property
    def export_path(self) -> str:
        """`<export_dir>/<run_name>`, the parent of SavedModel versions."""
        return os.path.join(self.export_dir, self.run_name)

    def to_flags(self) -> dict[str, object]:
        """Returns all settings as one dictionary, flag name to value."""
        flat = super().to_flags()
        for part in (self.data, self.model, self.training):
            flat |= part.to_flags()
        return flat | self.own

    def identity(self) -> dict[str, object]:
        """Returns the settings that decide the numbers of the run."""
        flags = self.to_flags()
        for name in LOCATION_FLAGS:
            flags.pop(name, None)
        return flags


PARTS: dict[str, type[Settings]] = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
}


def make_config(flags: dict[str, object]) -> RunConfig:
    """Builds a `RunConfig` from flat settings; the inverse of `to_flags`."""
    parts = {}
    for name, settings_class in PARTS.items():
        parts[name] = settings_class.from_flags(flags)
    config = RunConfig.from_flags(flags, **parts)
    plugins = split_names(config.plugins)
    own = read_own(flags, plugins)
    return dataclasses.replace(config, own=own)


def all_fields() -> list[dataclasses.Field]:
    """Returns every setting in the order of the help."""
    fields = RunConfig.list_settings()
    for settings_class in PARTS.values():
        fields += settings_class.list_settings()
    return fields
