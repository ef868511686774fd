"""Words on a command line that are no flags: `tfcomp train donut --depth=2`.

They stand for what a command is about: the flagfile of a run, or the runs.
"""

from collections.abc import Sequence

from absl import flags

from tfcomp.config.errors import RunError

# Flags that words are the value of, separated by commas.
TARGETS = ("runs", "run", "profile", "search")


def place_words(
    arguments: Sequence[str], values: flags.FlagValues
) -> list[str]:
    """Arguments in which every word has become a flag.

    Flagfiles come first, so that flags override them wherever they stand.

    Raises:
        RunError: If the command takes no words, one of them looks like a
            flag, or the flag that they stand for is given as well.
    """
    words, given = _split(arguments, values)
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and name in values:
            hint = f"did you mean --{word}?"
            raise RunError(f"unexpected argument {word!r}, {hint}")
    target = next((name for name in TARGETS if name in values), None)
    if not words:
        return given
    if target is None and "dataset" in values:  # the flags of a run
        return [*(f"--flagfile={word}" for word in words), *given]
    if target is None:
        rule = "flags start with --"
        raise RunError(f"unexpected argument {words[0]!r}: {rule}")
    if any(a.lstrip("-").partition("=")[0] == target for a in given):
        rule = f"--{target} says it already"
        raise RunError(f"unexpected argument {words[0]!r}: {rule}")
    return [*given, f"--{target}={','.join(words)}"]


def _split(
    arguments: Sequence[str], values: flags.FlagValues
) -> tuple[list[str], list[str]]:
    """The words, and the flags with the values that follow some of them."""
    words: list[str] = []
    given: list[str] = []
    queue = list(arguments)
    while queue:
        argument = queue.pop(0)
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
            continue
        given.append(argument)
        if _takes_next(argument, values) and queue:
            given.append(queue.pop(0))
    return words, given


def _takes_next(argument: str, values: flags.FlagValues) -> bool:
    """Whether the value of a flag is the argument after it."""
    name = argument.lstrip("-")
    if (
        "=" in name
        or name.removeprefix("no") in values
        and (values[name.removeprefix("no")].boolean)
    ):
        return False
    return not (name in values and values[name].boolean)
