"""The settings of one run: data, model, training, and output folders.

Frozen dataclasses that check themselves: an object that exists is valid.
The flags of `tfcomp train` are these fields (see `run_flags`).
"""

import dataclasses
import os
from dataclasses import dataclass, field

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.network_config import ModelConfig, TrainingConfig
from tfcomp.config.own_settings import OwnSettings, read_own
from tfcomp.config.settings import Settings, non_negative, setting

# Output location and bookkeeping; they do not change the results.
LOCATION_FLAGS = (
    "run_name log_dir export_dir data data_dir examples_dir resume overwrite "
    "pictures export keep_outputs"
).split()


@dataclass(frozen=True)
class RunConfig(Settings):
    """All settings of one run."""

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
    own: OwnSettings = field(default_factory=OwnSettings)  # of plugins

    def __post_init__(self) -> None:
        super().__post_init__()
        name, batch = self.run_name, self.training.batch_size
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
        flat = self.to_flags()
        return {k: v for k, v in flat.items() if k not in LOCATION_FLAGS}


PARTS: dict[str, type[Settings]] = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
}


def make_config(flags: dict[str, object]) -> RunConfig:
    """Builds a `RunConfig` from flat settings; the inverse of `to_flags`."""
    parts = {name: cls.from_flags(flags) for name, cls in PARTS.items()}
    config = RunConfig.from_flags(flags, **parts)
    own = read_own(flags, split_names(config.plugins))
    return dataclasses.replace(config, own=own)


def split_names(text: str) -> list[str]:
    """Splits names or patterns at commas, as in `logs/donut*,logs/depth`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def all_fields() -> list[dataclasses.Field]:
    """Returns every setting in the order of the help."""
    groups: list[type[Settings]] = [RunConfig, *PARTS.values()]
    return [item for group in groups for item in group.list_settings()]
