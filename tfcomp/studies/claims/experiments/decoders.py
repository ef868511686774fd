"""Settings that several experiments share: decoders of all bumps but a region.

The donut holds out a square in the centre, the corner a square in a corner.
"""

from tfcomp.tables.selection import Condition, Setting, region_is

# Codes of x and y, and the flagfile of the CNN that decodes them.
CODE_FLAGFILES = {
    "bump": "donut.flags",
    "ramp": "ramp.flags",
    "one_hot": "one_hot.flags",
    "positional": "positional.flags",
}
# The codes that the paper looks into.
MAIN_CODES = ("bump", "ramp")
HELD_OUT = {"donut": "square:6-22", "corner": "corner:14"}


def make_decoder(
    flagfile: str, region: str, *changes: str, **must: Condition
) -> Setting:
    """Returns networks that draw bumps on a grid, with a region held out.

    The region is published; any of its kind matches.
    """
    shared = {
        "dataset": "gaussian_bumps",
        "region": region_is(region),
        "num_train": 0,
        "coordinates": "grid",
    }
    return Setting(flagfile, shared | must, (f"--region={region}", *changes))


def make_cnn(code: str, region: str = "donut") -> Setting:
    """Returns the CNNs of one code, with a region held out."""
    file = CODE_FLAGFILES[code]
    return make_decoder(file, HELD_OUT[region], model="cnn", encoding=code)


def make_mlp(code: str) -> Setting:
    """Returns the MLPs of one code, with the centre held out."""
    changes = ("--encoding=ramp", "--epochs=100") if code == "ramp" else ()
    must = {"model": "mlp", "encoding": code}
    return make_decoder("mlp.flags", HELD_OUT["donut"], *changes, **must)


ALL_DONUTS = {f"donut, {code}": make_cnn(code) for code in CODE_FLAGFILES}
DONUTS = {f"donut, {code}": make_cnn(code) for code in MAIN_CODES}
BUMP_DONUT = {"donut, bump": make_cnn("bump")}
