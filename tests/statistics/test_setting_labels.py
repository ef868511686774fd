"""Short names of settings."""

from tfcomp.statistics.seed_statistics import choose_flags, make_label


def test_flags_that_follow_from_others_are_left_out() -> None:
    settings = [
        {"encoding": code, "epochs": epochs, "width": 8, "depth": depth}
        for code, epochs in (("bump", 50), ("ramp", 100))
        for depth in (2, 3)
    ]
    flags = choose_flags(settings)
    assert flags == ["encoding", "depth"]
    labels = [make_label(setting, flags) for setting in settings]
    assert labels[0] == "encoding bump, depth 2" and len(set(labels)) == 4


def test_a_flag_is_named_though_others_together_tell_it() -> None:
    """As the code of one row of a table of many small changes."""
    rows = [("one_hot", 3, 0.0), ("bump", 1, 0.0), ("one_hot", 1, 0.1)]
    settings = [{"sigma": s, "noise": n, "encoding": e} for e, s, n in rows]
    assert choose_flags(settings) == ["sigma", "noise", "encoding"]


def test_a_single_setting() -> None:
    assert choose_flags([{}]) == choose_flags([{"depth": 2}]) == []
    assert make_label({"depth": 2}, []) == "all"
    assert make_label({"rate": 0.0}, ["rate"]) == "rate 0"
