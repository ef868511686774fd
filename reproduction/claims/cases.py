"""The cases that claims judge, by the names that `claims.toml` gives them.

The donut holds out a square in the centre, the corner a square in a corner.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, product

from reproduction import selection
from reproduction.claims.claim import Case, Runs
from reproduction.claims.evidence import Evidence
from reproduction.groups import Group
from reproduction.selection import Arms, Setting, find_series


def _is_positive(value: float) -> bool:
    return value > 0


# Codes of x and y, and the flagfile of the CNN that decodes them.
CODE_FLAGFILES = {"bump": "donut.flags", "ramp": "ramp.flags"}
CODE_FLAGFILES |= {n: f"{n}.flags" for n in ("one_hot", "positional")}
MAIN_CODES = ("bump", "ramp")  # that the paper looks into
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


def decay(penalties: str, region: str = "corner") -> Setting:
    """Returns the published ones, whose learning rate falls at the end."""
    must = {"epochs": 1000, "decay": "linear", "decay_share": 0.2}
    return make_low_rank(penalties, region).require(**must)


def make_hard(axes: str) -> dict[str, Setting]:
    """Returns hard rendering with a flag `axes` for each region."""
    file, flag = "hard_rendering.flags", f"--axes={axes}"
    must = {"model": "hard_rendering", "axes": axes}
    words = "found" if axes == "find" else "given"
    return {
        f"{name}, axes {words}": make_decoder(file, region, flag, **must)
        for name, region in HELD_OUT.items()
    }


GIVEN, FOUND = make_hard("x:columns,y:rows"), make_hard("find")
HARD = GIVEN | FOUND
STRIPED = Setting(
    "stripes_and_bumps.flags",
    {"dataset": "stripes", "model": "cnn", "encoding": "bump"},
).require(region=selection.region_is("corner"))
STRIPES = Setting(
    "stripes.flags", {**STRIPED.must, "num_bumps": 0}, ("--encoding=bump",)
)
ROTATED = Setting(
    "rotated_mnist.flags", {"dataset": "rotated_digits", "digit_classes": ""}
).require(digit_source="mnist", region=selection.region_is("gap"))
DEPTHS = (2, 3, 4, 5, 6)
NUMBERS = (0, 10, 50, 100)  # of bumps beside stripes
# The first decides: epochs, and steps of one.
LENGTHS = {"1,000 steps": (25, 40), "3,150 steps": (50, 63)}
# The authors' 1,260 steps are too short for MLPs to fit.
AUTHORS_LENGTH = {"epochs": 20, "steps_per_epoch": 63}


def is_full_length(epochs: int) -> bool:
    """Returns True unless trained for the authors' length."""
    return epochs != AUTHORS_LENGTH["epochs"]


# Volumes spread as training goes on, so that bumps alone and stripes with bumps
# must be trained for as many steps.
CORNER = Arms(
    {
        "bumps only": make_cnn("bump", "corner:14"),
        "stripes and bumps": STRIPED.require(num_bumps=50),
    },
    free=("dataset", "num_bumps", "epochs", "steps_per_epoch"),
    equal_steps=True,
)


def _compare(
    evidence: Evidence, arms: Arms, cases: Mapping[str, Sequence[str]]
) -> Iterator[Case]:
    """Yields arms that are compared seed by seed, all alike else."""
    found = arms.find(evidence.groups)
    for label, names in cases.items():
        first, *others = groups = [found[name] for name in names]
        problems = [arms.find_mismatch(first, other) for other in others]
        yield Case(label, groups, next(filter(None, problems), ""))


def _compare_penalties(
    cases: Mapping[str, Sequence[str]], *names: str
) -> Callable[[Evidence], Iterator[Case]]:
    """Compares low-rank networks that differ in their penalties alone."""
    free = ("entropy_weight", "variance_weight", "penalty_basis")
    arms = {name: make_low_rank(name) for name in names or PENALTIES}
    return partial(_compare, arms=Arms(arms, free), cases=cases)


def _list_pairs(*pairs: tuple[str, str]) -> dict[str, tuple[str, str]]:
    return {
        f"{worse} over {better}": (worse, better) for worse, better in pairs
    }


def _list_depths(evidence: Evidence) -> Iterator[Case]:
    """Yields CNNs that differ in depth alone, which decide, then others."""
    for code in MAIN_CODES:
        setting = make_cnn(code)
        any_depth = setting.require(depth=DEPTHS.__contains__)
        base = any_depth.find(evidence.groups)
        must = {**any_depth.must, **base.flags, "depth": DEPTHS.__contains__}
        same = Setting(any_depth.flagfile, must)
        alike = find_series(evidence.groups, same, "depth") or {4: Group()}
        for depth, group in alike.items():
            yield Case(f"{code}, depth {depth}", [group])
        for depth in set(DEPTHS).difference(alike):
            label = f"{code}, depth {depth}, beside the others"
            group = setting.require(depth=depth).find(evidence.groups)
            if len(group):
                yield Case(label, [group], decides=False)


def _list_shallow_and_deep(evidence: Evidence) -> Iterator[Case]:
    """Yields a shallow and the deepest network with enough seeds, by code."""
    shallow, deep = min(DEPTHS), max(DEPTHS)
    for code in ("ramp", "bump"):
        groups = find_series(
            evidence.groups, make_cnn(code), "depth", (shallow, deep)
        )
        first = groups.pop(shallow, Group())
        enough = [n for n, g in groups.items() if selection.has_enough(g)]
        depth = deep if deep in enough else max(enough or groups, default=deep)
        label = f"{code}, depth {shallow} less depth {depth}"
        pair = [first, groups.get(depth, Group())]
        yield Case(label, pair, decides=code == "ramp")


def _find_counts(evidence: Evidence, length: str, shown: slice) -> list[Case]:
    """Returns networks that differ in their number of bumps alone."""
    epochs, steps = LENGTHS[length]
    setting = STRIPED.require(epochs=epochs, steps_per_epoch=steps)
    found = find_series(evidence.groups, setting, "num_bumps", NUMBERS)
    groups = [found.get(count, Group()) for count in NUMBERS]
    missing = ", ".join(str(n) for n in NUMBERS if n not in found)
    problem = f"no run with {missing} bumps" if missing else ""
    return [Case(length, groups[shown], problem, length == "1,000 steps")]


def _list_counts(evidence: Evidence) -> list[Case]:
    """Returns the networks of every number of bumps."""
    found = find_series(evidence.groups, STRIPED, "num_bumps")
    series = (found or {50: Group()}).items()
    return [Case(f"stripes and {n} bumps", [group]) for n, group in series]


def _find_digit(evidence: Evidence) -> list[Case]:
    """Returns the rotated digit; the label says which gap it is."""
    group = ROTATED.find(evidence.groups)
    region = f", {group.flags['region']}" if len(group) else ""
    return [Case(f"rotated digit{region}", [group])]


RUNS: dict[str, Runs] = {
    "bump donut": {"donut, bump": make_cnn("bump")},
    "donuts": {f"donut, {code}": make_cnn(code) for code in MAIN_CODES},
    "all donuts": {f"donut, {code}": make_cnn(code) for code in CODE_FLAGFILES},
    "MLPs": {
        f"MLP, {code}": make_mlp(code).require(epochs=is_full_length)
        for code in MAIN_CODES
    },
    "depths": _list_depths,
    "shallow and deep": _list_shallow_and_deep,
    "both penalties": {
        f"{region}, both penalties": decay("both", region)
        for region in HELD_OUT
    },
    "one penalty": {
        f"{name} alone": decay(name) for name in ("entropy", "variance")
    },
    "corner, both penalties": {"both": decay("both")},
    "order of penalties": _compare_penalties({"the order": [*PENALTIES]}),
    "steps of penalties": _compare_penalties(_list_pairs(*pairwise(PENALTIES))),
    "costs of penalties": _compare_penalties(
        _list_pairs(*product([*PENALTIES][1:], ["none"]), ("variance", "both"))
    ),
    "none and both": _compare_penalties(
        {"corner, none less both": ("none", "both")}, "none", "both"
    ),
    "stripes alone": {"stripes only, bump": STRIPES},
    "numbers of bumps": _list_counts,
    "corner": partial(
        _compare,
        arms=CORNER,
        cases={"corner, bumps only less stripes and bumps": [*CORNER.settings]},
    ),
    "rotated digit": _find_digit,
    "hard rendering, axes given": GIVEN,
    "hard rendering, axes found": FOUND,
    **{
        f"{length}{words}": partial(_find_counts, length=length, shown=shown)
        for length in LENGTHS
        for words, shown in {
            "": slice(None),
            ", last two": slice(-1, -3, -1),  # most, then fewer
            ", last": slice(-1, None),
        }.items()
    },
}
