"""The networks that figures of the paper show, by their flags.

The donut holds out a square in the centre, the corner a square in a corner.
"""

from reproduction import selection
from reproduction.groups import Group
from reproduction.selection import Setting


def select_fitted(group: Group) -> Group:
    """Keeps the fitted runs: on stripes, those with ID peaks in place."""
    # From stripes alone a network draws a plus and not a bump: its error on
    # bumps is large however well it is trained.
    if "stripes" in group.flags["dataset"]:
        is_fitted = group.get("id/position_accuracy") > 0.95
    else:
        is_fitted = group.get("id/relative_mse") < 0.05
    return group.keep(is_fitted.index[is_fitted])


def _is_positive(value: float) -> bool:
    return value > 0


# Codes of x and y, and the flagfile of the CNN that decodes them.
CODE_FLAGFILES = {"bump": "donut.flags", "ramp": "ramp.flags"}
CODE_FLAGFILES |= {n: f"{n}.flags" for n in ("one_hot", "positional")}
# Penalties: the flagfile, and the weights of entropy and variance.
PENALTIES = {
    "none": ("low_rank_none.flags", 0, 0),
    "entropy": ("low_rank_entropy.flags", _is_positive, 0),
    "variance": ("low_rank_variance.flags", 0, _is_positive),
    "both": ("low_rank.flags", _is_positive, _is_positive),
}
HELD_OUT = {"corner": "corner:12", "centre": "square:8-23"}


def make_decoder(
    flagfile: str, region: str, *changes: str, **must: selection.Condition
) -> Setting:
    """Returns networks that draw bumps; any region of the kind matches."""
    must = {"num_train": 0, "coordinates": "grid"} | must
    must |= {"dataset": "gaussian_bumps", "region": selection.region_is(region)}
    return Setting(flagfile, must, (f"--region={region}", *changes))


def make_cnn(code: str, region: str = "square:6-22") -> Setting:
    """Returns the CNNs of one code, by default on the donut."""
    must = {"model": "cnn", "encoding": code}
    return make_decoder(CODE_FLAGFILES[code], region, **must)


def make_mlp(code: str) -> Setting:
    """Returns the MLPs of one code on the donut."""
    changes = ("--encoding=ramp", "--epochs=100") if code == "ramp" else ()
    must = {"model": "mlp", "encoding": code}
    return make_decoder("mlp.flags", "square:6-22", *changes, **must)


def make_low_rank(penalties: str, region: str = "corner") -> Setting:
    """Returns low-rank networks with some of `PENALTIES`, and a region."""
    flagfile, entropy, variance = PENALTIES[penalties]
    must = {"entropy_weight": entropy, "variance_weight": variance}
    must |= {"penalty_basis": "raw"} if variance else {}
    changes = [HELD_OUT[region], "--penalty_basis=raw"]
    return make_decoder(flagfile, *changes, model="low_rank").require(**must)


def make_hard(axes: str) -> dict[str, Setting]:
    """Returns hard rendering with a flag `axes` for each region."""
    file, flag = "hard_rendering.flags", f"--axes={axes}"
    must = {"model": "hard_rendering", "axes": axes}
    words = "found" if axes == "find" else "given"
    return {
        f"{name}, axes {words}": make_decoder(file, region, flag, **must)
        for name, region in HELD_OUT.items()
    }


HARD = make_hard("x:columns,y:rows") | make_hard("find")
STRIPED = Setting(
    "stripes_and_bumps.flags",
    {"dataset": "stripes", "model": "cnn", "encoding": "bump"},
).require(region=selection.region_is("corner"))
ROTATED = Setting(
    "rotated_mnist.flags", {"dataset": "rotated_digits", "digit_classes": ""}
).require(digit_source="mnist", region=selection.region_is("gap"))
NUMBERS = (0, 10, 50, 100)  # of bumps beside stripes
