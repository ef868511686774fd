"""The settings of a run that decide its network."""

from __future__ import annotations

from dataclasses import dataclass

from tfcomp.config.settings import Settings
from tfcomp.config.settings import setting


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The decoder, and the code of the factors that it is given."""

    model: str = setting("cnn", "Name of the decoder (the README lists them).")
    encoding: str = setting(
        "bump", "Name of the input code of the factors (the README lists them)."
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
    rank: int = setting(
        32,
        "Low-rank model: the largest rank of an embedding matrix.",
        minimum=1,
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
        "Low-rank model: take the variance of the raw parameters, as "
        "published, or of the unit vectors that are in use.",
        choices=("raw", "unit"),
    )
    penalty_reduction: str = setting(
        "sum",
        "Low-rank model: sum or average the penalties over the matrices.",
        choices=("sum", "mean"),
    )
