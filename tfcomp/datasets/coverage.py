"""Families of regions that differ in the share of combinations in training.

    random:.1,.2,.4     training has this share of all combinations; each seed
                        draws its own, of which larger shares have more
    uselis:8:1,2,4      training combines a block with k others (of n = 8)
    orthotopic:0,1,2    in training at most k factors reach their thresholds

A region says what is held out: coverage .1 is the region `random:0.9`.
"""

import re

from tfcomp.config.errors import ConfigError

FAMILY = re.compile(
    r"(random:)(0?\.\d+(?:,0?\.\d+)*)"
    r"|(uselis:\d+:|orthotopic:)(\d+(?:,\d+)*)"
)


def list_regions(coverage: str) -> list[str]:
    """Lists the regions of a family, without seeds.

    Args:
        coverage: The text of `--coverage`, as `random:.1,.2,.4`.

    Returns:
        A region for each value, as `random:0.9`.

    Raises:
        ConfigError: If the text has another form.

    Example:
        >>> list_regions("uselis:8:1,4")
        ['uselis:8:1', 'uselis:8:4']
    """
    match = FAMILY.fullmatch(coverage)
    if match is None:
        rule = (
            "must be random:.1,.2 (shares in training), uselis:8:1,2,4 or "
            "orthotopic:0,1,2"
        )
        raise ConfigError("coverage", rule, coverage)
    random, shares, kind, numbers = match.groups()
    if random is None:
        parts = numbers.split(",")
        return [f"{kind}{number}" for number in parts]

    regions = []
    for text in shares.split(","):
        held_out = 1 - float(text)
        regions.append(f"{random}{held_out:.9g}")
    return regions


def add_seed(region: str, seed: int) -> str:
    """Returns the region of a seed.

    Args:
        region: One of `list_regions`.
        seed: Of a training; a random region is drawn by it.
    """
    if region.startswith("random:"):
        return f"{region}:{seed}"
    return region
