"""What one run is: data, model, training, and where its output goes.

Frozen dataclasses that check themselves: an object that exists is valid.
The flags of `python -m tfcomp.train` are these fields (see `run_flags`).
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from dataclasses import field

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import Settings
from tfcomp.config.settings import setting

# Output location and bookkeeping; they do not change what is computed.
LOCATION_FLAGS = (
    "run_name",
    "log_dir",
    "export_dir",
    "data_dir",
    "examples_dir",
    "resume",
    "pictures",
)


@dataclass(frozen=True)
class DataConfig(Settings):
    """The examples: factors, held-out region, rendering."""

    dataset: str = setting(
        "gaussian_bumps", "Dataset by name (see the README for the list)."
    )
    region: str = setting(
        "square:6-22",
        "Held-out factor combinations, bounds inclusive: square:6-22, "
        "corner:14, cross:11-16, gap:x:10-16, box:x:6-22,y:0-9, "
        "diagonal:3 or none.",
    )
    grid_size: int = setting(
        28,
        "Pixels along one side of the image, and values of x and of y.",
        minimum=4,
    )
    sigma: float = setting(
        1.0, "Standard deviation of a bump, in pixels.", above=0.0
    )
    polarity: str = setting(
        "dark",
        "bright: the bump is 1 on 0; dark: 1 minus that.",
        choices=("bright", "dark"),
    )
    coordinates: str = setting(
        "grid",
        "Training positions: every cell of the grid, or continuous "
        "positions drawn uniformly outside the region.",
        choices=("grid", "continuous"),
    )
    num_train: int = setting(
        0,
        "Training examples; 0 means all ID cells (continuous: as many).",
        minimum=0,
    )
    num_bumps: int = setting(
        0,
        "Bumps, drawn from ID, that are mixed with the stripes.",
        minimum=0,
    )
    num_angles: int = setting(
        1000,
        "Rotated digits: images from 0 to 360 degrees inclusive, so that "
        "the first is also the last.",
        minimum=4,
    )
    digit_source: str = setting(
        "mnist",
        "Rotated digits: from MNIST (through TFDS), or drawn strokes that "
        "need no data, for a first try.",
        choices=("mnist", "stand_in"),
    )
    digit_class: int = setting(
        4, "Rotated digits: which digit.", minimum=0, below=10
    )
    digit_classes: str = setting(
        "",
        "Rotated digits: several, as 0,1,4; the digit is a second factor "
        "then, in place of --digit_class.",
    )
    digit_index: int = setting(
        0,
        "Rotated digits: which training example of its class, in TFDS order.",
        minimum=0,
    )
    data_dir: str = setting(
        "",
        "TFDS data directory; default the variable TFDS_DATA_DIR, or the "
        "one of TFDS.",
    )
    examples_dir: str = setting(
        "",
        "Take training images from the data set that python -m "
        "tfcomp.materialize wrote there, with the same bits; default is to "
        "render them.",
    )


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The decoder and the code that it is given."""

    model: str = setting("cnn", "Decoder by name (README: list).")
    encoding: str = setting(
        "bump", "Input code of the factors by name (README: list)."
    )
    depth: int = setting(
        4, "Hidden layers between the first stage and the output.", minimum=1
    )
    width: int = setting(64, "Channels or units of a layer.", minimum=1)
    ramp_range: str = setting(
        "signed",
        "Ramp code: signed scales a factor to [-1, 1], unit to [0, 1], "
        "raw keeps its value (published form; it underfits).",
        choices=("signed", "unit", "raw"),
    )
    absent_value: float = setting(
        0.0, "Ramp code: the number that stands for an absent factor."
    )
    rank: int = setting(
        32, "Low-rank model: largest rank of an embedding matrix.", minimum=1
    )
    entropy_weight: float = setting(
        0.1,
        "Low-rank model: weight alpha of the entropy penalty.",
        minimum=0.0,
    )
    variance_weight: float = setting(
        0.01,
        "Low-rank model: weight beta of the variance penalty.",
        minimum=0.0,
    )
    penalty_basis: str = setting(
        "raw",
        "Low-rank model: variance of the raw parameters, as published, or "
        "of the unit vectors in use.",
        choices=("raw", "unit"),
    )
    penalty_reduction: str = setting(
        "sum",
        "Low-rank model: sum or average penalties over the matrices.",
        choices=("sum", "mean"),
    )


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Optimization."""

    epochs: int = setting(50, "Epochs.", minimum=1)
    steps_per_epoch: int = setting(
        0,
        "Batches an epoch; 0 means one pass over the training examples.",
        minimum=0,
    )
    batch_size: int = setting(32, "Global batch size.", minimum=1)
    learning_rate: float = setting(1e-3, "AdamW learning rate.", above=0.0)
    weight_decay: float = setting(
        0.01, "AdamW decoupled weight decay.", minimum=0.0
    )
    l1_weight: float = setting(
        0.0,
        "Weight of the absolute error that is added to the squared one.",
        minimum=0.0,
    )
    clip_norm: float = setting(
        0.0, "Largest norm of the whole gradient; 0 is off.", minimum=0.0
    )
    plateau_patience: int = setting(
        0,
        "Halve the learning rate after more than so many epochs without a "
        "lower training loss; 0 is off.",
        minimum=0,
    )
    seed: int = setting(
        0,
        "Seed of data, initial weights and batch order.",
        minimum=0,
        below=2**31,
    )
    precision: str = setting(
        "float32",
        "Arithmetic of the hidden layers.",
        choices=("float32", "mixed_bfloat16"),
    )
    num_replicas: int = setting(
        0,
        "Replicas that share a batch; 0 means every GPU, or one CPU.",
        minimum=0,
    )


@dataclass(frozen=True)
class RunConfig(Settings):
    """One run, completely."""

    run_name: str = setting("donut", "Name of the run and its folders.")
    log_dir: str = setting("tensorboard_logs", "Parent of run folders.")
    export_dir: str = setting("saved_models", "Parent of SavedModels.")
    eval_every: int = setting(
        1,
        "Epochs between ID and OOD scores; 0 means only at the end.",
        minimum=0,
    )
    layerwise_every: int = setting(
        10,
        "Epochs between layerwise geometry, probes and pictures; 0 means "
        "only at the end.",
        minimum=0,
    )
    checkpoint_seconds: float = setting(
        10.0,
        "Save at the end of an epoch after this time since the last.",
        minimum=0.0,
    )
    pictures: bool = setting(
        True, "Draw images into TensorBoard (a third of a short run's time)."
    )
    resume: bool = setting(
        False, "Go on with a run that was interrupted, to the same bits."
    )
    plugins: str = setting(
        "", "Python modules to import first; they register your own parts."
    )
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self.run_name
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise ConfigError(
                "run_name", "must be a plain name without a path", name
            )
        replicas = max(self.training.num_replicas, 1)
        if self.training.batch_size % replicas:
            raise ConfigError(
                "batch_size",
                f"must be a multiple of --num_replicas={replicas}",
                self.training.batch_size,
            )

    @property
    def run_dir(self) -> str:
        """`<log_dir>/<run_name>`."""
        return os.path.join(self.log_dir, self.run_name)

    @property
    def export_path(self) -> str:
        """`<export_dir>/<run_name>`, the parent of SavedModel versions."""
        return os.path.join(self.export_dir, self.run_name)

    def to_flags(self) -> dict[str, object]:
        """All settings as one flat dictionary, flag name to value."""
        flat = super().to_flags()
        for part in (self.data, self.model, self.training):
            flat |= part.to_flags()
        return flat

    def identity(self) -> dict[str, object]:
        """The settings that decide what the run computes."""
        flat = self.to_flags()
        return {k: v for k, v in flat.items() if k not in LOCATION_FLAGS}


PARTS = {"data": DataConfig, "model": ModelConfig, "training": TrainingConfig}


def make_config(flags: dict[str, object]) -> RunConfig:
    """Builds a `RunConfig` from flat settings; the inverse of `to_flags`.

    Raises:
        ConfigError: If a value breaks its rule.
    """
    parts = {name: cls.from_flags(flags) for name, cls in PARTS.items()}
    return RunConfig.from_flags(flags, **parts)


def all_fields() -> list[dataclasses.Field]:
    """Every setting in the order in which help should list them."""
    groups = (RunConfig, *PARTS.values())
    return [item for group in groups for item in group.list_settings()]
