"""Commands start and end with help, a status, and no traceback."""

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from reproduction import command as campaign
from reproduction.plans import PLANS
from reproduction.thresholds import command as threshold
from tfcomp import __main__ as tfcomp
from tfcomp import __version__, sweep, train
from tfcomp.config import errors
from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.config.run_flags import expand_flagfiles

TABLE = {
    "name": ("none", "A name."),
    "count": (3, "A number."),
    "share": (0.5, "A share."),
    "again": (False, "Whether to repeat."),
    "axis": ([], "Given several times."),
}
# Prints, waits for a line, prints again.
TALK = """
import sys
from tfcomp.config.command import Command, exit_on_user_error
def talk(settings):
    print('first', flush=True)
    sys.stdin.readline()
    print('second')
    return 0
exit_on_user_error(Command('Talks.', {}, talk))
"""


def call(*arguments: str) -> dict[str, object]:
    """Returns the flags that the action of a command receives."""
    found: dict[str, object] = {}
    argv = ["program", *arguments]
    status = Command("Does.", TABLE, lambda v: found.update(v) or 7)(argv)
    assert status == 7
    return found


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A command at work, whose temporary files are gone when it ends."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    pipes["env"] = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", TALK]
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "first\n"
        yield process
    assert not list(tmp_path.iterdir())


def test_flags_of_a_table() -> None:
    defaults = {name: default for name, (default, _) in TABLE.items()}
    assert call() == defaults
    given = call("--name=x", "--count=4", "--again", "--axis=a", "--axis=b")
    changed = {"name": "x", "count": 4, "again": True, "axis": ["a", "b"]}
    assert given == defaults | changed
    with pytest.raises(errors.ConfigError, match="must be an integer"):
        call("--count=x")


@pytest.mark.parametrize("flag", ["--help", "-help", "-h", "--helpfull"])
def test_help_is_printed_and_nothing_done(
    flag: str, capsys: pytest.CaptureFixture
) -> None:
    assert Command("Does.\n", TABLE, exit)(["program", "--x", flag]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Does.\n\nFlags:\n  --name=none\n")
    assert "  --again=false\n" in printed and "  --axis=\n" in printed
    assert "Shipped" not in printed  # no shipped flagfile has these flags


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import importlib, sys\n"
        "heavy = {'tensorflow', 'keras', 'tensorflow_datasets', 'pandas',\n"
        "         'matplotlib', 'scipy', 'sklearn'}\n"
        "for name in sys.argv[1:]:\n"
        "    main = importlib.import_module(name).main\n"
        "    assert main([name, '--help']) == 0, name\n"
        "    assert not heavy & set(sys.modules), name\n"
        "from tfcomp.metrics.registry import list_metrics\n"
        "assert list_metrics() and 'matplotlib' not in sys.modules\n"
        "import tfcomp.sweeps.sweep_page\n"  # of a sweep's main process
        "heavy = {'tensorflow', 'keras', 'fontTools.subset', 'scipy.stats',\n"
        "         'scipy.optimize'}\n"
        "assert not heavy & set(sys.modules)\n"
    )
    commands = [f"tfcomp.{n}" for n in tfcomp.COMMANDS if n != "solvable"]
    commands += [f"reproduction.{name}.command" for name in PLANS]
    result = subprocess.run(
        [sys.executable, "-c", script, *commands],
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("command", [train, sweep, threshold])
def test_nothing_long_starts_without_a_flag(
    command: ModuleType, working_folder, capsys: pytest.CaptureFixture
) -> None:
    assert command.main(["command"]) == 0
    printed = capsys.readouterr().out
    (first,) = re.findall(r"Try first: .* (\w+)(?: --.*)?$", printed, re.M)
    assert expand_flagfiles([f"--flagfile={first}"])
    assert list(working_folder.iterdir()) == []


def test_commands_are_listed_and_named(
    capsys: pytest.CaptureFixture,
) -> None:
    assert tfcomp.main(["tfcomp"]) == 0
    listed = capsys.readouterr().out
    assert tfcomp.main(["tfcomp", "compare", "--help"]) == 0
    helped = capsys.readouterr().out
    assert helped.splitlines()[0] in listed
    for name in tfcomp.COMMANDS:
        assert f"tfcomp {name} " in listed
    with pytest.raises(errors.RunError, match="did you mean train"):
        tfcomp.main(["tfcomp", "trian"])
    assert tfcomp.main(["tfcomp", "--version"]) == 0
    assert capsys.readouterr().out == f"tfcomp {__version__}\n"


@pytest.mark.parametrize("name", PLANS)
def test_commands_of_the_campaign_show_all_of_their_flags(
    name: str, capsys: pytest.CaptureFixture
) -> None:
    assert campaign.main(name, [name, "--help"]) == 0
    printed = capsys.readouterr().out
    for flag in ("runs", "pack", "plan", "run", "log_dir"):
        assert f"\n  --{flag}=" in printed


def test_reader_that_goes_away(talk: subprocess.Popen) -> None:
    # The pipe is read to its first line and closed, as `| head -1` does.
    talk.stdout.close()
    talk.stdin.write("go on\n")
    talk.stdin.close()
    assert (talk.wait(), talk.stderr.read()) == (141, "")


@pytest.mark.parametrize(
    ("sent", "status", "line"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")],
)
def test_stop(
    sent: signal.Signals, status: int, line: str, talk: subprocess.Popen
) -> None:
    talk.send_signal(sent)
    assert (talk.wait(), talk.stderr.read()) == (status, line)


# Waits where Python swallows what a handler raises, and goes on.
SWALLOW = {
    "collector": """
        gc.callbacks.append(lambda *_: wait(1.0))
        gc.collect()
    """,
    "finalizer": """
        class Resource:
            def __del__(self):
                wait(1.0)
        Resource()
    """,
    "library": """
        try:
            wait(1.0)
        except:
            pass
    """,
    "other error": """
        try:
            wait(1.0)
        except BaseException as error:
            raise ValueError("of a library") from error
    """,
    "clean-up": """
        try:
            wait(20.0)
        finally:
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                pass
            print("closed", flush=True)
    """,
    "endless": """
        try:
            wait(20.0)
        finally:
            print("closed", flush=True)
            wait(20.0)
    """,
}
STOPPED = """
import gc, sys, time
from tfcomp.config.command import Command, exit_on_user_error
gc.disable()
def wait(seconds):
    print("first", flush=True)
    time.sleep(seconds)
def work(settings):
{body}
    wait(20.0)
exit_on_user_error(Command("Works.", {{}}, work))
"""


def start_stopped(case: str, place: Path) -> subprocess.Popen:
    """Starts a command, and waits until it is where a signal gets lost."""
    body = SWALLOW[case].replace("\n    ", "\n")
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    )
    assert process.stdout.readline() == "first\n"
    return process


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "case", [name for name in SWALLOW if name != "endless"]
)
def test_no_request_to_stop_is_lost(
    case: str, count: int, tmp_path: Path
) -> None:
    with start_stopped(case, tmp_path) as process:
        for _ in range(count):  # `timeout` sends two
            process.send_signal(signal.SIGTERM)
        printed, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (143, "")
    assert "closed" in printed or case != "clean-up"
    assert not list(tmp_path.iterdir())


def test_a_second_request_kills(tmp_path: Path) -> None:
    with start_stopped("endless", tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "closed\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


# Failures

FULL = "No space left on device"


def refuse(code: int, path: str | None = None) -> OSError:
    return OSError(code, os.strerror(code), path)


def make_tensorflow_error(
    text: str, kind: str = "ResourceExhaustedError"
) -> Exception:
    place = {"__module__": "tensorflow.python.framework.errors_impl"}
    return type(kind, (Exception,), place)(text)


def wrap(error: OSError) -> errors.RunError:
    wrapped = errors.RunError(f"--output must be writable: {error}")
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (refuse(errno.ENOSPC, "a/b.csv"), f"a/b.csv: {FULL}", 1),
        # h5py appends details.
        (OSError(errno.ENOSPC, f"Can't write ({FULL})"), FULL, 1),
        (MemoryError("Unable to\nallocate"), "out of memory: Unable to", 1),
        (
            make_tensorflow_error(
                "{{node x}} a/ckpt-2.data.tempstate719; "
                + FULL
                + " [Op:SaveV2]"
            ),
            f"a/ckpt-2.data.tempstate719: {FULL}",
            1,
        ),
        (
            make_tensorflow_error(
                "Graph execution error:\n\nDetected at node x\n"
                "OOM when allocating tensor with shape[9,9] and type float\n"
            ),
            "OOM when allocating tensor with shape[9,9]",
            1,
        ),
        (wrap(refuse(errno.ENOSPC)), "--output must be writable: ", 1),
        (wrap(refuse(errno.EACCES)), "--output must be writable: ", 2),
        (errors.RunError("two\nlines"), "two lines", 2),
        (errors.DivergedError("up"), "up", 1),
    ],
)
def test_failure_in_one_line(error: Exception, line: str, status: int) -> None:
    found, code = errors.explain_failure(error)
    assert found.startswith(line) and "\n" not in found and len(found) < 500
    assert code == status


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        BrokenPipeError(),
        make_tensorflow_error("shapes differ", "InvalidArgumentError"),
    ],
)
def test_other_errors_are_not_explained(error: Exception) -> None:
    assert errors.explain_failure(error) is None


def test_refusal_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def refuse_room(settings: dict) -> int:
        raise refuse(errno.ENOSPC, "a")

    def main(argv: list[str]) -> int:
        flags = {"resume": (False, "To go on.")}
        return Command("Does.", flags, refuse_room)(argv)

    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(SystemExit) as ended:
        exit_on_user_error(main)
    line = capsys.readouterr().err
    assert ended.value.code == 1 and line.startswith(f"error: a: {FULL}; ")
    assert line.endswith("--resume\n")
