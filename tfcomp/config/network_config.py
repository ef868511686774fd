"""The settings of a run that decide its network and how it is trained."""

from dataclasses import dataclass

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import Settings, non_negative, setting


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The decoder, and the code of the factors that it is given."""

    model: str = setting(
        "cnn", "Name of the decoder (see docs/experiments.md)."
    )
    encoding: str = setting(
        "bump", "Name of the input code of the factors (docs/experiments.md)."
    )
    depth: int = setting(
        4, "Hidden layers after the first stage.", minimum=1, maximum=1000
    )
    width: int = setting(
        64, "Channels or units of a layer.", minimum=1, maximum=2**16
    )
    start: str = setting(
        "default",
        "Initial weights: the model's own, or the published ones (uniform "
        "up to 1 / sqrt(fan-in)), as low_rank and hard_rendering always have.",
        choices=("default", "published"),
    )
    code_width: float = non_negative(
        0.0,
        "Bump code: standard deviation of the tuning of a unit, in grid steps; "
        "0 takes the width of the bump (--sigma).",
        maximum=1e6,
    )
    ramp_range: str = setting(
        "signed",
        "Ramp code: scale a factor to [-1, 1] (signed) or [0, 1] (unit), or "
        "keep its value (raw; the published form, which underfits).",
        choices=("signed", "unit", "raw"),
    )
    absent_value: float = setting(
        0.0, "Ramp code: number in place of an absent factor.", minimum=-1e30
    )
    groups: str = setting(
        "",
        "Composed models, attention: factors of each object, front to back, as "
        "in x_a+y_a,x_b+y_b; by default one each. Acting: by default all.",
    )
    patch_size: int = non_negative(
        0,
        "Transformer: rows and columns of pixels of a token; 0 takes the "
        "fewest that leave at most 784 tokens.",
    )
    interaction_weight: float = non_negative(
        0.0,
        "Attention: weight of the penalty that a pixel sees several tokens.",
    )
    rank: int = setting(
        32,
        "Low-rank model: the largest rank of an embedding matrix. "
        "Low-rank product: the number of products.",
        minimum=1,
    )
    entropy_weight: float = non_negative(
        0.1, "Low-rank model: weight alpha of the entropy penalty."
    )
    variance_weight: float = non_negative(
        0.01, "Low-rank model: weight beta of the variance penalty."
    )
    penalty_basis: str = setting(
        "raw",
        "Low-rank model: take the variance of the raw parameters, as "
        "published, or of the unit vectors that are in use.",
        choices=("raw", "unit"),
    )
    penalty_reduction: str = setting(
        "sum",
        "Low-rank model: sum or average the penalties over the matrices.",
        choices=("sum", "mean"),
    )
    axes: str = setting(
        "find",
        "Hard rendering: find the image axis of every factor, or say it, as "
        "in x:columns,y:rows, where the profile of a value of x has a number "
        "for every column; find and none (a low-rank matrix) work as well.",
    )
    axis_weight: float = non_negative(
        1e-4, "Hard rendering: weight of the penalty that one axis survives."
    )
    channels: str = setting(
        "all", "Acting: what factors do: x, y, angle, size, template, color."
    )
    candidates: int = setting(
        8,
        "Acting: trainings side by side; the shortest description is kept.",
        minimum=1,
        maximum=1000,
    )
    shrink: float = non_negative(
        0.1,
        "Acting: how fast a factor loses the channels that it does not need, "
        "in units of the learning rate.",
    )
    channel_price: float = non_negative(
        0.002, "Acting: training error that a channel of a factor must save."
    )
    prune_below: float = non_negative(
        0.2,
        "Hard rendering: an axis is pruned, and the penalty of its factor "
        "ends, if its profiles are shorter than this share of the other ones.",
        maximum=1.0,
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
