"""Files that are damaged or links, and modules that write past `files`."""

import ast
import errno
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tfcomp.config.errors import RunError
from tfcomp.storage import files
from tfcomp.storage.files import (
    MAX_TEXT,
    DamagedFileError,
    read_csv,
    read_json,
    write_csv,
)
from tfcomp.storage.output_folders import lock_folder

GARBAGE = bytes(range(256))


@pytest.mark.parametrize(
    ("read", "content"),
    [
        *product([read_json], [b"{", b"[]", b"3", b"[" * 100_000]),
        (read_json, b'{"mse": ' + b"9" * 400 + b"}"),
        *product([read_json, read_csv], [b"", GARBAGE]),
        (read_csv, b"a\n" + b"x" * 200_000),
    ],
)
def test_damaged_files(read: Callable, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="numbers is damaged"):
        read(path)


@pytest.mark.parametrize("cut", [-1, -4])
def test_cut_csv(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    rows = [{"epoch": "1", "loss": "0.125"}, {"epoch": "2", "loss": ""}]
    write_csv(path, rows)
    assert read_csv(path) == rows
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DamagedFileError, match="history.csv is damaged"):
        read_csv(path)


def test_huge_file(tmp_path: Path) -> None:
    """Before, 3 GB were read into memory."""
    path = tmp_path / "metrics.json"
    with open(path, "wb") as file:
        file.truncate(MAX_TEXT + 1)
    with pytest.raises(DamagedFileError, match="it has more than 128 MB"):
        read_json(path)


# Links in folders of others would lead our writing to other files.
SECRET = "export PATH=/usr/bin\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user outside of the folder that others prepared."""
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "theirs"
    path.mkdir()
    return path


@pytest.mark.parametrize("name", [".partial-a.txt", ".partial-", "a.txt"])
def test_files_replace_links(name: str, folder: Path, victim: Path) -> None:
    (folder / name).symlink_to(victim)

    files.write_text(folder / "a.txt", "$(id)")

    assert victim.read_text() == SECRET
    assert not (folder / "a.txt").is_symlink()
    assert (folder / "a.txt").read_text() == "$(id)"


def test_folders_replace_links(folder: Path, victim: Path) -> None:
    (folder / "keras").symlink_to(victim.parent)

    with files.replace_folder(folder, "keras") as partial:
        (partial / ".bashrc").write_text("$(id)")

    assert victim.read_text() == SECRET
    assert (folder / "keras" / ".bashrc").read_text() == "$(id)"


def test_logs_append_to_no_link(folder: Path, victim: Path) -> None:
    (folder / "a.log").symlink_to(victim)
    with pytest.raises(OSError):
        files.open_log(folder / "a.log")
    assert victim.read_text() == SECRET


@pytest.mark.parametrize("name", ["new", ".bashrc"])
@pytest.mark.parametrize("lock", [".lock", ".lock.soft"])
def test_locks_follow_no_link(
    lock: str,
    name: str,
    folder: Path,
    victim: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if lock == ".lock.soft":
        monkeypatch.setattr("fcntl.flock", refuse_locks)
    (folder / lock).symlink_to(victim.with_name(name))
    with pytest.raises((OSError, RunError)):
        with lock_folder(folder):
            pass
    assert [path.name for path in victim.parent.iterdir()] == [".bashrc"]
    assert victim.read_text() == SECRET


def refuse_locks(*_: object) -> None:
    raise OSError(errno.ENOSYS, "Function not implemented")


ROOT = Path(__file__).parents[2]
MAKERS = ("mkdir", "makedirs", "touch", "savefig", "tofile")
WRITERS = ("write_text", "write_bytes", "savez", "savez_compressed", "copytree")
# Modules that write into folders which they have made, or in memory.
ALLOWED = {
    "tfcomp/storage/files.py",
    "tfcomp/metrics/manifolds.py",  # np.savez, in memory
    "tfcomp/figures/exhibits.py",  # a figure, where a user saves it
    "tfcomp/figures/image_files.py",  # np.savez in a `write_whole`
}


def find_writes(source: str) -> list[str]:
    """The calls that write or make folders by other ways."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        call = node.func
        name = call.attr if isinstance(call, ast.Attribute) else ""
        modes = [a.value for a in node.args[1:] if isinstance(a, ast.Constant)]
        is_open = isinstance(call, ast.Name) and call.id == "open"
        is_write = is_open and any(set("wax+") & set(str(m)) for m in modes)
        if not is_write and name not in (*MAKERS, *WRITERS):
            continue
        text = ast.unparse(node)
        is_ours = text.startswith("files.") or "os.devnull" in text
        is_ours |= text.startswith("open(os.open(") or "partial" in text
        if not is_ours:
            found.append(text)
    return found


def test_all_modules_write_through_files() -> None:
    found = {
        str(path.relative_to(ROOT)): calls
        for package in ("tfcomp", "pipelines")
        for path in (ROOT / package).rglob("*.py")
        if (calls := find_writes(path.read_text("utf-8")))
    }
    assert found.keys() == ALLOWED, found
