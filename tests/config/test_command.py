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

from reproduction.thresholds import command as threshold
from tfcomp import __main__ as tfcomp
from tfcomp import __version__, solvable, sweep, train
from tfcomp.config import errors
from tfcomp.config.run_flags import Command, expand_flagfiles
from tfcomp.datasets import DATASETS
from tfcomp.models import ENCODINGS, MODELS

TABLE = {
    "name": ("none", "A name."),
    "count": (3, "A number."),
    "again": (False, "Whether to repeat."),
    "axis": ([], "Given several times."),
}
# Prints, waits for a line, prints again.
TALK = """
import sys
from tfcomp.config.process import exit_on_user_error
def talk(arguments):
    print('first', flush=True)
    sys.stdin.readline()
    print('second')
    return 0
exit_on_user_error(talk)
"""


@pytest.fixture
def talk_hung_up(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A command at work under `nohup`, which ignores SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with start(TALK, tmp_path) as process:
        signal.signal(signal.SIGHUP, before)
        yield process


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A command at work, whose temporary files are gone when it ends."""
    with start(TALK, tmp_path) as process:
        yield process
    assert not list(tmp_path.iterdir())


def start(code: str, folder: Path) -> subprocess.Popen:
    """Starts a command with its temporary files in a folder."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    pipes["env"] = os.environ | {"TMPDIR": str(folder)}
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, text=True, **pipes)
    assert process.stdout.readline() == "first\n"
    return process


def test_an_action_receives_the_flags_of_its_table():
    settings: dict[str, object] = {}
    command = Command("Does.", TABLE, lambda given: settings.update(given) or 7)
    assert command(["", "--count=4", "--again", "--axis=a", "--axis=b"]) == 7
    assert settings == {
        "name": "none",
        "count": 4,
        "again": True,
        "axis": ["a", "b"],
    }


@pytest.mark.parametrize("flag", ["--help", "-help", "-h", "--helpfull"])
def test_help_is_printed_and_nothing_done(
    flag: str, capsys: pytest.CaptureFixture
):
    assert Command("Does.\n", TABLE, exit)(["program", "--x", flag]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Does.\n\nFlags:\n  --name=none\n")
    assert "  --again=false\n" in printed
    assert "  --axis=\n" in printed
    assert "Shipped" not in printed  # flagfiles have the flags of runs


def list_helped(printed: str) -> set[str]:
    """The flags that a help lists."""
    return set(re.findall(r"^  --(\w+)=", printed, re.MULTILINE))


def test_short_help_has_the_names_of_parts(
    capsys: pytest.CaptureFixture,
):
    assert train.main(["train", "--help"]) == 0
    printed = capsys.readouterr().out
    names = {*MODELS.names(), *ENCODINGS.names(), *DATASETS.names()}
    words = set(re.findall(r"\w+", printed))
    assert names <= words
    assert len(list_helped(printed)) <= 25
    titles = re.findall(r"^([A-Z][a-z ]*):$", printed, re.MULTILINE)
    assert len(titles) == 5


@pytest.mark.parametrize(
    "arguments, flag",
    [
        (["--model=acting"], "candidates"),
        (["--model", "low_rank"], "entropy_weight"),
        (["low_rank"], "entropy_weight"),
        (["--dataset=sprites"], "sprite_sizes"),
        (["--encoding=ramp"], "ramp_range"),
    ],
)
def test_help_of_a_part_has_its_flags(
    arguments: list[str], flag: str, capsys: pytest.CaptureFixture
):
    train.main(["train", "--help"])
    short = list_helped(capsys.readouterr().out)
    train.main(["train", *arguments, "--help"])
    listed = list_helped(capsys.readouterr().out)
    assert flag in listed - short
    assert short <= listed


def test_full_help_has_every_flag(capsys: pytest.CaptureFixture):
    train.main(["train", "--helpfull"])
    listed = list_helped(capsys.readouterr().out)
    assert listed - {"flagfile"} == set(train.define_flags())


def test_help_without_a_network_has_flags_of_data(
    capsys: pytest.CaptureFixture,
):
    solvable.main(["solvable", "--help"])
    listed = list_helped(capsys.readouterr().out)
    assert {"dataset", "region", "plugins"} <= listed
    assert listed.isdisjoint({"model", "epochs", "log_dir"})


# Prints the help of commands, and asks for what that has imported.
HELP = """
import importlib, sys, unittest.mock
heavy = {"tensorflow", "keras", "tensorflow_datasets", "pandas", "kfp",
         "matplotlib", "scipy", "sklearn"}
for name in sys.argv[1:]:
    main = importlib.import_module(name).main
    assert main([name, "--help"]) == 0, name
    assert not heavy & set(sys.modules), name
from tfcomp.metrics.registry import list_metrics
assert list_metrics() and "matplotlib" not in sys.modules
# The main process of a sweep, and what compiles a pipeline, but for the SDK.
import tfcomp.sweeps.sweep_page
heavy = {"tensorflow", "keras", "fontTools.subset", "scipy.stats",
         "scipy.optimize"}
assert not heavy & set(sys.modules)
sys.modules["kfp"] = unittest.mock.MagicMock()
import pipelines.pipeline
from reproduction.claims.page import list_claims
list(list_claims())
assert not {"tensorflow", "keras"} & set(sys.modules)
"""


def test_help_imports_nothing_heavy():
    commands = [f"tfcomp.{n}" for n in tfcomp.COMMANDS if n != "solvable"]
    rooms = ("claims", "decoders", "thresholds", "figures")
    commands += [f"reproduction.{room}.command" for room in rooms]
    commands.append("reproduction.packing")

    commands += ["pipelines.compile", "pipelines.run_local"]
    result = subprocess.run(
        [sys.executable, "-c", HELP, *commands],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "--pipeline_root=" in result.stdout


@pytest.mark.parametrize("command", [train, sweep, threshold])
def test_nothing_long_starts_without_a_flag(
    command: ModuleType, working_folder, capsys: pytest.CaptureFixture
):
    assert command.main(["command"]) == 0
    printed = capsys.readouterr().out
    (first,) = re.findall(r"Try first: .* (\w+)(?: --.*)?$", printed, re.M)
    assert expand_flagfiles([f"--flagfile={first}"])
    assert list(working_folder.iterdir()) == []


def test_commands_are_listed_and_named(capsys: pytest.CaptureFixture):
    assert tfcomp.main(["tfcomp"]) == 0
    listed = capsys.readouterr().out
    for name, purpose in tfcomp.COMMANDS.items():
        assert f"tfcomp {name} " in listed
        assert purpose in listed
    assert tfcomp.main(["tfcomp", "compare", "--help"]) == 0
    assert "--scores=" in capsys.readouterr().out
    assert tfcomp.main(["tfcomp", "--version"]) == 0
    assert capsys.readouterr().out == f"tfcomp {__version__}\n"
    with pytest.raises(errors.RunError, match="did you mean train"):
        tfcomp.main(["tfcomp", "trian"])


def test_reader_that_goes_away(talk: subprocess.Popen):
    # The pipe is read to its first line and closed, as `| head -1` does.
    talk.stdout.close()
    talk.stdin.write("go on\n")
    talk.stdin.close()
    assert talk.wait() == 141
    assert talk.stderr.read() == ""


def test_an_interruption_is_one_line(talk: subprocess.Popen):
    talk.send_signal(signal.SIGINT)
    assert talk.wait() == 130
    assert talk.stderr.read() == "interrupted\n"


# Waits where Python swallows what a handler raises, and goes on.
SWALLOW = {
    "collector": """
        gc.callbacks.append(lambda *_: wait(1.0))
        gc.collect()
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
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass
            print("closed", flush=True)
    """,
    "endless": """
        process.SAME_REQUEST_SECONDS = 0.1
        try:
            wait(20.0)
        finally:
            print("closed", flush=True)
            wait(20.0)
    """,
}
STOPPED = """
import gc, time
from tfcomp.config import process
gc.disable()
def wait(seconds):
    print("first", flush=True)
    time.sleep(seconds)
def work(arguments):
{body}
    wait(20.0)
process.exit_on_user_error(work)
"""


def start_stopped(case: str, place: Path) -> subprocess.Popen:
    """Starts a command, and waits until it is where a signal gets lost."""
    body = SWALLOW[case].replace("\n    ", "\n")
    # The tests may have been started by `nohup`, which the command would obey.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    process = start(STOPPED.format(body=body), place)
    signal.signal(signal.SIGHUP, before)
    return process


CASES = [name for name in SWALLOW if name != "endless"]


@pytest.mark.parametrize(
    "case, count, number",
    [
        *[(case, 1, signal.SIGTERM) for case in CASES],
        ("library", 2, signal.SIGTERM),
        ("clean-up", 2, signal.SIGTERM),
        ("clean-up", 1, signal.SIGHUP),  # the terminal is closed
    ],
)
def test_no_request_to_stop_is_lost(
    case: str, count: int, number: int, tmp_path: Path
):
    with start_stopped(case, tmp_path) as process:
        for _ in range(count):  # `timeout` sends two
            process.send_signal(number)
        printed, errors = process.communicate(timeout=10)
    statuses = {128 + number}
    if count == 2:  # Python, which has no handlers at its very end, dies of it
        statuses.add(-number)
    assert process.returncode in statuses
    assert errors == ""
    assert "closed" in printed or case != "clean-up"
    assert not list(tmp_path.iterdir())


def test_a_second_request_kills(tmp_path: Path):
    with start_stopped("endless", tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "closed\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def test_nohup_keeps_a_command_alive(talk_hung_up: subprocess.Popen):
    talk_hung_up.send_signal(signal.SIGHUP)
    printed, errors = talk_hung_up.communicate("go on\n")
    assert (printed, errors) == ("second\n", "")
    assert talk_hung_up.returncode == 0


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_streams_that_a_shell_has_closed(closed: str, tmp_path: Path):
    work = """
import sys
from tfcomp.config.process import exit_on_user_error, quiet_startup
def work(arguments):
    print('out')
    print('err', file=sys.stderr)
    with quiet_startup(), open('written', 'w') as file:
        file.write('all')
    return 3
exit_on_user_error(work)
"""
    result = subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" {closed}', sys.executable, work],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 3
    assert (tmp_path / "written").read_text() == "all"
    assert result.stdout == ("out\n" if closed == "2>&-" else "")
    assert result.stderr == ("err\n" if closed == ">&-" else "")


# Failures

FULL = "No space left on device"


def refuse(code: int, path: str | None = None) -> OSError:
    return OSError(code, os.strerror(code), path)


def make_tensorflow_error(text: str) -> Exception:
    place = {"__module__": "tensorflow.python.framework.errors_impl"}
    return type("ResourceExhaustedError", (Exception,), place)(text)


def wrap(error: OSError) -> errors.RunError:
    wrapped = errors.RunError(f"--output must be writable: {error}")
    wrapped.__cause__ = error
    return wrapped


SAVING = f"{{{{node x}}}} a/ckpt-2.data.tempstate719; {FULL} [Op:SaveV2]"
ALLOCATING = (
    "Graph error:\n\nat x\nOOM when allocating tensor[9,9] and type x\n"
)


@pytest.mark.parametrize(
    "error, line, status",
    [
        (refuse(errno.ENOSPC, "a/b.csv"), f"a/b.csv: {FULL}", 1),
        (refuse(errno.ENOENT), "No such file or directory: does the wo", 1),
        # h5py appends details.
        (OSError(errno.ENOSPC, f"Can't write ({FULL})"), FULL, 1),
        (MemoryError("Unable to\nallocate"), "out of memory: Unable to", 1),
        (
            make_tensorflow_error(SAVING),
            f"a/ckpt-2.data.tempstate719: {FULL}",
            1,
        ),
        (make_tensorflow_error(ALLOCATING), "OOM when allocating", 1),
        (wrap(refuse(errno.ENOSPC)), "--output must be writable: ", 1),
        (wrap(refuse(errno.EACCES)), "--output must be writable: ", 2),
        (errors.RunError("two\nlines"), "two lines", 2),
        (errors.DivergedError("up"), "up", 1),
    ],
)
def test_failure_in_one_line(error: Exception, line: str, status: int):
    message, code = errors.explain_failure(error)
    assert message.startswith(line)
    assert "\n" not in message
    assert code == status


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        BrokenPipeError(),
        make_tensorflow_error("shapes differ"),
    ],
)
def test_other_errors_are_not_explained(error: Exception):
    assert errors.explain_failure(error) is None
