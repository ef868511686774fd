"""Hostile command lines: one line each, status 2, and nothing written.

    python tests/commands/test_hostile_lines.py FOLDER NUMBER SEED

prints the answers of all commands as JSON. Lines are made of the flags that the
commands declare and of values that are too large, of the wrong type, no text,
or no path. Each ends where the command would begin its work: nothing is
trained.
"""

import contextlib
import functools
import importlib
import io
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures"
RUN = "runs/smoke"
BEGUN = "begun"
SECONDS, BYTES = 20, 4 << 30
# What a command imports when it begins to work.
WORK = ("tensorflow", "keras", "tensorflow_datasets", "distributed", "kfp")
# The module of a command, the name of its work, and flags that are good.
COMMANDS = {
    "tfcomp.train": ("", ["--flagfile=smoke.flags"]),
    "tfcomp.sweep": ("run_missing", ["--flagfile=sweep_smoke.flags"]),
    "reproduction.thresholds.command": (
        "run_missing",
        ["--flagfile=threshold_quick.flags", "--grid_sizes=8"],
    ),
    "tfcomp.solvable": ("find_orders", ["--flagfile=smoke.flags"]),
    "tfcomp.train examples": (
        "",
        ["--flagfile=smoke", "--materialize", "--examples_dir=examples"],
    ),
    "tfcomp.analyze": ("", [f"--run={RUN}"]),
    "tfcomp.analyze metrics": ("", [f"--run={RUN}", "--measure"]),
    "tfcomp.compare": ("write_table", [f"--runs={RUN}", "--output=table"]),
    "reproduction.figures.command": ("", [f"--runs={RUN}"]),
    "pipelines.run_local": ("", ["--profile=smoke"]),
    "pipelines.compile": ("", ["--profile=smoke"]),
    "reproduction.claims.command": ("write_report", [f"--runs={RUN}"]),
    "tfcomp.export": ("", [f"--run={RUN}"]),
    "reproduction.decoders.command": ("make_folder", [f"--runs={RUN}"]),
    "reproduction.packing": (
        "write_pack",
        ["--output=packed", f"--runs={RUN}"],
    ),
    "tfcomp.__main__ train": ("", ["train", "smoke"]),
    "tfcomp.__main__ compare": ("", ["compare", RUN]),
}
HUGE = "9" * 5000
NUMBERS = f"""
    0 -1 1 2 3 7 8 12 1e3 1.5 ² ٣ 0x10 {2**31} {2**63} {2**64} {10**12} {HUGE}
    {10**4} {10**5} {10**6} {10**7} {10**8} {10**10} {10**400} -{10**400} 1000
    nan inf -inf 1e300 1e-300 1e400 1e30 1e-9 1024 4096 65536
""".split()
VALUES = f"""
    true false maybe none a,b ,, 1,2 2,2 a/b .. . / // ~ ~nobody ~/x
    $ a$^_{{x$b $HOME %s {{}} {{0}} * ? [ [a **  ; | > & \\ " ' ` <b> é 点 🙂
    /dev/null /dev/null/x /dev/full /etc/passwd /proc/version /proc/1/x
    nowhere nowhere/x {"a" * 181} {"a" * 256} {"b/" * 3000} {"c" * 70000}
    square:6-22 square:22-6 square:{HUGE}-1 corner:{10**400} gap:x:1e5-2
    box:x:1-2,y:3-4 box:x:1-2,x:1-2 diagonal:-1 diagonal:{HUGE} none:3 : gap:
    cnn mlp low_rank rotation stripes rotated_digits gaussian_bumps circle
    hard_rendering find x:rows,y:columns x:rows linear cosine published
    one_hot bump ramp positional continuous stand_in relative_mse
    id ood/mse id/mse,ood/mse tcp://h:1 tls://h:1 ucx://h:1 tcp://:99999999
    os no.such.module os.path:join smoke quick donut flags/binary profile
    flags/broken_profile runs runs/* runs/smoke,runs/smoke runs/smoke/run.flags
    runs/cut runs/empty
""".split()
VALUES += NUMBERS[::3]
VALUES += ["", " ", "a b", " a", "a\nb", "a\tb", "a\0b", "\udcff", "a\udc80b"]
# Whole arguments.
ARGUMENTS = f"""
    smoke.flags - -- --- --= -=3 --x --dept=3 -depth --depth --depth= --nodepth
    --nodepth=3 --noresume=1 -h=1 --{HUGE}=3 --é=3 --flagfile= --flagfile=smoke
    --flagfile=smokee --flagfile=/ --flagfile=. --flagfile=/dev/zero --flagfile
    --flagfile=flags/binary --flagfile=flags/nul --flagfile=flags/loop
    --flagfile=/etc/passwd --flagfile={"a" * 5000}
    --undefok=depth --undefok --helpxml --only_check_args --v=1
""".split()
ARGUMENTS += ["", " ", "\0", "\udcff", "--a\0b=3", "--\udcff=3"]
AXES = ["", "=", "=3", "depth", "depth=", "/=1/2", "depth/width=1", "seed=1,2"]
AXES += ["flagfile=/etc/passwd", "undefok=a,b", "nopictures=1", 'region="a']


class BeginsError(BaseException):
    """Raised in place of the work of a command."""


class Guard:
    """An importer that raises where the work of a command is imported."""

    def find_spec(self, name: str, *_: object):
        if name.partition(".")[0] in WORK:
            raise BeginsError


def begin(*_: object, **__: object):
    raise BeginsError


def make_lines(number: int, seed: int) -> list[list[str]]:
    """Command lines, module and arguments; those that are good come first."""
    rng = random.Random(seed)
    lines = [[name, *good] for name, (_, good) in COMMANDS.items()]
    names = itertools.cycle(COMMANDS)
    while len(lines) < number:
        name = next(names)
        flags = list_flags(name)
        bad = [make_bad(flags, rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        good = COMMANDS[name][1] if rng.random() < 0.9 else []
        lines.append([name, *good, *bad])
    return lines


def make_bad(flags: dict[str, str], rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(ARGUMENTS)
    flag = rng.choice(list(flags))
    is_number = flags[flag][:1].isdigit() and rng.random() < 0.8
    value = rng.choice(NUMBERS if is_number else VALUES)
    if flag == "grid":
        axis = f"{rng.choice(list(flags))}={value}"
        value = rng.choice([*AXES, axis, axis, axis, axis, axis, axis, axis])
    return f"--{flag}={value}"


def find_main(name: str) -> Callable[[list[str]], int]:
    """The function of a command, by its name in `COMMANDS`."""
    module, *_ = name.split()
    return importlib.import_module(module).main


@functools.cache
def list_flags(name: str) -> dict[str, str]:
    """The flags of a command and their defaults, from its help."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        find_main(name)(["", *COMMANDS[name][1], "--help"])
    lines = printed.getvalue().splitlines()
    pairs = [ln[4:].split("=", 1) for ln in lines if ln.startswith("  --")]
    return {flag: default for flag, default in pairs if flag != "flagfile"}


def make_files(folder: Path):
    """Files that hostile lines refer to, and a finished run."""
    logs = folder / "runs/tensorboard_logs"
    with zipfile.ZipFile(FIXTURES / "earlier_runs.zip") as archive:
        archive.extractall(logs.parent)
    (logs / "earlier").rename(folder / RUN)
    shutil.rmtree(logs)
    shutil.copytree(folder / RUN, folder / "runs/cut")
    (folder / "runs/cut/metrics.json").write_text('{"id": ')
    (folder / "runs/empty").mkdir()

    flags = folder / "flags"
    (flags / "broken_profile").mkdir(parents=True)
    (flags / "broken_profile/pipeline.flags").write_text("--max=" * 9999)
    (flags / "binary").write_bytes(bytes(range(256)))
    (flags / "nul").write_text("--depth=3\n--log_dir=a\0b\n")
    (flags / "loop").write_text("--flagfile=loop\n")


def answer(line: list[str], folder: Path) -> dict[str, object]:
    """Runs one line, and removes what it wrote."""
    from tfcomp.config.process import exit_on_user_error

    before = set(folder.rglob("*"))
    sys.argv = line
    printed = io.StringIO()
    complaint = io.StringIO()
    signal.alarm(SECONDS)
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complaint),
    ):
        try:
            exit_on_user_error(find_main(line[0]))
        except BeginsError:
            status = BEGUN
        except SystemExit as end:
            status = end.code
        except BaseException:
            status = traceback.format_exc()
    signal.alarm(0)

    written = sorted(set(folder.rglob("*")) - before)
    for path in reversed(written):
        path.rmdir() if path.is_dir() else path.unlink()
    return {
        "line": line,
        "status": status,
        "said": complaint.getvalue(),
        "written": list(map(str, written)),
    }


def main():
    """Answers all lines."""
    sys.path.insert(0, str(ROOT))
    folder = Path(sys.argv[1]) / "work"
    folder.mkdir()
    make_files(folder)
    os.environ |= {"HOME": str(folder), "MPLCONFIGDIR": sys.argv[1]}
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    sys.meta_path.insert(0, Guard())
    for name, (work, _) in COMMANDS.items():
        module = importlib.import_module(name.split()[0])
        if work:
            setattr(module, work, begin)
    lines = make_lines(int(sys.argv[2]), int(sys.argv[3]))
    json.dump([answer(line, folder) for line in lines], sys.__stdout__)


@pytest.mark.parametrize(
    "number", [40, pytest.param(600, marks=pytest.mark.slow)]
)
def test_every_line_is_answered(number: int, tmp_path: Path):
    command = [sys.executable, __file__, tmp_path, str(number), "0"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    answers = json.loads(result.stdout)
    assert len(answers) == number
    good = answers[: len(COMMANDS)]
    for answer in good:
        assert answer["status"] in (BEGUN, 0), answer
    refused = [a for a in answers if a["status"] not in (BEGUN, 0)]
    assert len(refused) > number / 4
    for answer in refused:
        assert answer["status"] in (1, 2), answer
        *notes, error = answer["said"].splitlines()
        assert error.startswith("error: "), answer
        for note in notes:
            assert note.startswith("left out: "), answer
        assert not answer["written"], answer


if __name__ == "__main__":
    main()
