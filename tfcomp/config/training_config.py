"""The settings of a run that decide how its network is trained."""

from dataclasses import dataclass

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import Settings, non_negative, setting


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Optimization.

    The product of the largest epochs, steps and batch fits into 63 bits:
    TensorFlow counts examples in int64.
    """

    epochs: int = setting(50, "Number of epochs.", minimum=1, maximum=10**6)
    steps_per_epoch: int = non_negative(
        0,
        "Number of batches in an epoch; 0 means one pass over the training "
        "examples.",
    )
    batch_size: int = setting(
        32, "Examples in a batch, over all replicas.", minimum=1, maximum=10**5
    )
    learning_rate: float = setting(1e-3, "Learning rate of AdamW.", above=0.0)
    decay: str = setting(
        "none",
        "How the learning rate falls to 0 over the last steps: not at all, "
        "along a line, or along half a period of a cosine.",
        choices=("none", "linear", "cosine"),
    )
    decay_share: float = setting(
        0.2,
        "Share of all steps, the last ones, in which the learning rate falls.",
        above=0.0,
        maximum=1.0,
    )
    adam_epsilon: float = setting(
        1e-7,
        "Epsilon of AdamW: the default of Keras; that of the published code "
        "is 1e-8.",
        above=0.0,
    )
    weight_decay: float = non_negative(0.01, "Decoupled weight decay of AdamW.")
    l1_weight: float = non_negative(
        0.0, "Weight of the absolute error that is added to the squared error."
    )
    clip_norm: float = non_negative(
        0.0,
        "Largest norm of the whole gradient, which is scaled down to it; 0 "
        "means no limit.",
    )
    plateau_patience: int = non_negative(
        0,
        "Halve the learning rate after more than this number of epochs "
        "without a lower training loss; 0 means never.",
    )
    seed: int = non_negative(
        0,
        "Seed of the data, the initial weights and the order of the batches.",
        maximum=2**31 - 1,
    )
    id_target: float = non_negative(
        0.0,
        "Start a training again, from another seed, if it ends with an ID "
        "relative MSE above this; 0 means never.",
    )
    restarts: int = non_negative(
        3,
        "With --id_target: how often, at most. The training with the lowest "
        "ID error is kept.",
        maximum=1000,
    )
    precision: str = setting(
        "float32",
        "Arithmetic of the hidden layers.",
        choices=("float32", "mixed_bfloat16"),
    )
    num_replicas: int = non_negative(
        0,
        "Number of replicas that share a batch; 0 means one on every GPU, or "
        "one on the CPU.",
        maximum=1024,
    )
    compiled: str = setting(
        "auto",
        "Whether the training steps of an epoch run as one program of XLA: "
        "always, never, or (auto) on one GPU, where the training images fit "
        "into a quarter of its memory.",
        choices=("auto", "always", "never"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay != "none" and self.plateau_patience:
            rule = "must be none with --plateau_patience"
            raise ConfigError("decay", rule, self.decay)
