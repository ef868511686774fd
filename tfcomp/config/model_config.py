"""The settings of a run that decide its network."""

from dataclasses import dataclass

from tfcomp.config.settings import Settings, non_negative, setting


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The decoder, and the code of the factors that it is given."""

    model: str = setting(
        "cnn", "Name of the decoder (docs/experiments.md lists them)."
    )
    encoding: str = setting(
        "bump",
        "Name of the input code of the factors (docs/experiments.md lists "
        "them).",
    )
    depth: int = setting(
        4,
        "Number of hidden layers between the first stage and the output.",
        minimum=1,
        maximum=1000,
    )
    width: int = setting(
        64, "Channels or units of a layer.", minimum=1, maximum=2**16
    )
    start: str = setting(
        "default",
        "Initial weights of layers with a kernel: those of the model, or the "
        "published ones (uniform up to 1 / sqrt(fan-in), biases, too), which "
        "the models low_rank and hard_rendering have in any case.",
        choices=("default", "published"),
    )
    ramp_range: str = setting(
        "signed",
        "Ramp code: scale a factor to [-1, 1] (signed) or [0, 1] (unit), or "
        "keep its value (raw; the published form, which underfits).",
        choices=("signed", "unit", "raw"),
    )
    absent_value: float = setting(
        0.0,
        "Ramp code: the number that stands for an absent factor.",
        minimum=-1e30,
    )
    groups: str = setting(
        "",
        "Composed models and attention: which factors form an object, as in "
        "x_a+y_a,x_b+y_b, from front to back; by default each factor by "
        "itself.",
    )
    patch_size: int = non_negative(
        0,
        "Transformer: rows and columns of pixels that are one token; 0 takes "
        "the fewest that leave at most 784 tokens.",
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
        "for every column. A factor may also have find or none (a low-rank "
        "matrix), which categorical and periodic factors have by default.",
    )
    axis_weight: float = non_negative(
        1e-4,
        "Hard rendering: weight of the penalty that one axis of a factor "
        "survives.",
    )
    channels: str = setting(
        "all",
        "Acting: what the values of factors may do, some of x, y, angle, size, "
        "template and color.",
    )
    candidates: int = setting(
        8,
        "Acting: number of trainings side by side, of which the shortest "
        "description is kept.",
        minimum=1,
        maximum=1000,
    )
    shrink: float = non_negative(
        0.1,
        "Acting: how fast a factor loses the channels that it does not need, "
        "in units of the learning rate.",
    )
    channel_price: float = non_negative(
        0.002,
        "Acting: training error that a channel of a factor must save, for a "
        "candidate to be kept.",
    )
    prune_below: float = non_negative(
        0.2,
        "Hard rendering: an axis whose profiles are shorter than this share of "
        "those of the other one is pruned, and the penalty of its factor ends.",
        maximum=1.0,
    )
