"""Does the search recover an exponent that was planted?

    python -m tfcomp.thresholds.planted

searches in made-up noisy responses whose thresholds grow as N, N^2 and N^3,
and prints the slopes that come out and how often their 95 % intervals hold
the planted exponent. No network is trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcomp.statistics.power_law import PowerLaw
from tfcomp.statistics.power_law import average_sizes
from tfcomp.statistics.power_law import fit_power_law
from tfcomp.thresholds.search import Limits
from tfcomp.thresholds.search import dither
from tfcomp.thresholds.search import find_threshold

SIZES = (16, 20, 24, 28, 32)
TARGET = 0.8
REPEATS = 200


@dataclass(frozen=True)
class Response:
    """A made-up learner: its score rises with the log of the count.

    score = 1 / (1 + (c / count)^sharpness) + noise, with c = 0.5 N^exponent
    times the luck of the seed times that of the size.

    Attributes:
        exponent: Of the law.
        sharpness: Steepness of the score.
        noise: Standard deviation of a score.
        seed_luck: Standard deviation of log c over seeds.
        size_luck: Standard deviation of log c over sizes, shared by seeds: a
            departure from the law.
    """

    exponent: float
    sharpness: float = 4.0
    noise: float = 0.02
    seed_luck: float = 0.15
    size_luck: float = 0.0

    def draw_counts(
        self, rng: np.random.Generator, num_seeds: int = 3
    ) -> tuple[list[int], list[int]]:
        """Sizes, and what the search found for each seed of each of them."""
        sizes, counts = [], []
        for size in SIZES:
            shared = rng.normal(0, self.size_luck)
            for seed in range(num_seeds):
                luck = shared + rng.normal(0, self.seed_luck)
                middle = 0.5 * size**self.exponent * np.exp(luck)
                sizes.append(size)
                counts.append(self._search(middle, size, seed, rng))
        return sizes, counts

    def _search(
        self, middle: float, size: int, seed: int, rng: np.random.Generator
    ) -> int:
        def reaches(count: int) -> bool:
            score = 1 / (1 + (middle / count) ** self.sharpness)
            return score + rng.normal(0, self.noise) >= TARGET

        first = dither(size**2 / 4, seed, size)
        return find_threshold(reaches, Limits(first, 64 * size**3)).count


def recover(response: Response, rng: np.random.Generator) -> PowerLaw:
    """The law that one whole study finds in a response."""
    return fit_power_law(average_sizes(*response.draw_counts(rng)))


def main() -> None:
    """Prints a table of planted and recovered exponents."""
    print(
        f"{'planted':>8}{'mean slope':>12}{'sd':>7}{'intervals that hold':>21}"
    )
    for exponent in (1, 2, 3):
        rng = np.random.default_rng(exponent)
        laws = [recover(Response(exponent), rng) for _ in range(REPEATS)]
        slopes = [law.slope for law in laws]
        held = np.mean([law.low <= exponent <= law.high for law in laws])
        print(
            f"{exponent:>8}{np.mean(slopes):>12.2f}{np.std(slopes):>7.2f}"
            f"{held:>21.0%}"
        )


if __name__ == "__main__":
    main()
