"""Modules write through `storage.files`, which follows no links."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKERS = ("mkdir", "makedirs", "touch", "savefig", "tofile")
WRITERS = ("write_text", "write_bytes", "savez", "savez_compressed", "copytree")
# Modules that write into folders which they have made, or in memory.
ALLOWED = {
    "tfcomp/storage/files.py",
    "tfcomp/analysis/manifolds.py",  # np.savez, in memory
    "tfcomp/evaluation/published_models.py",  # np.savez, in memory
    "tfcomp/config/quiet.py",  # a file in memory
    "tfcomp/config/process.py",  # a new temporary folder
    "tfcomp/evaluation/kept_outputs.py",  # np.savez in a `write_whole`
    "pipelines/steps/canary.py",  # a new temporary folder
    "pipelines/steps/release.py",  # a new temporary folder
}


def find_writes(source: str) -> list[str]:
    """The calls that write or make folders by other ways."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        call, text = node.func, ast.unparse(node)
        name = call.attr if isinstance(call, ast.Attribute) else ""
        modes = [a.value for a in node.args[1:] if isinstance(a, ast.Constant)]
        is_open = isinstance(call, ast.Name) and call.id == "open"
        is_write = is_open and any(set("wax+") & set(str(m)) for m in modes)
        is_ours = text.startswith("files.") or "os.devnull" in text
        is_ours |= text.startswith("open(os.open(") or "partial" in text
        if not is_ours and (is_write or name in (*MAKERS, *WRITERS)):
            found.append(text)
    return found


@pytest.mark.parametrize(
    "source",
    ["p.mkdir()", "os.makedirs(p)", "open(p, 'ab')", "p.write_text('a')"],
)
def test_writes_are_found(source: str) -> None:
    assert find_writes(source) == [source]


def test_all_modules_write_through_files() -> None:
    found = {
        str(path.relative_to(ROOT)): calls
        for package in ("tfcomp", "pipelines")
        for path in (ROOT / package).rglob("*.py")
        if (calls := find_writes(path.read_text("utf-8")))
    }
    assert {name: found[name] for name in found.keys() - ALLOWED} == {}
