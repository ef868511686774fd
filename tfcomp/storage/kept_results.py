"""Results that are kept beside a run: computed once, read with distrust.

    <folder>/<name>.npz    arrays, and a tree in JSON that refers to them

A file is written in one step. One that is damaged (the checksums of the
archive tell), unreadable, or of another version is as if it were not there.
Nothing in it is run: there are no pickles, and classes are looked up by name
among those that are expected.
"""

import contextlib
import dataclasses
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.storage.files import write_whole

MAX_BYTES = 2**28  # of one file; what is larger is computed again
# What reading a file leads to that is not there, damaged, or of another kind.
UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, EOFError),
    zipfile.BadZipFile,
)
_TREE = "tree"


class KeptResults:
    """Results of one version of what they follow from, in a folder, which is
    made when the first one is kept; the classes are those among them."""

    def __init__(
        self, folder: Path, version: str, classes: Mapping[str, type]
    ) -> None:
        self._folder, self._version = folder, version
        self._classes = classes  # dataclasses and named tuples

    def get(self, name: str, compute: Callable[[], Any]) -> Any:
        """What is kept by a name, or else what is computed, and kept now."""
        with (
            contextlib.suppress(*UNREADABLE),
            open(self._folder / f"{name}.npz", "rb") as raw,
            np.load(raw, allow_pickle=False) as file,
        ):
            content = json.loads(file[_TREE].tobytes())
            if content["version"] == self._version:
                return self._unpack(content["value"], file)
        value = compute()
        self.keep(name, value)
        return value

    def keep(self, name: str, value: Any) -> None:
        """Keeps a value in place of another one, where that can be written."""
        arrays: dict[str, np.ndarray] = {}
        content = {"version": self._version, "value": _pack(value, arrays)}
        if sum(array.nbytes for array in arrays.values()) > MAX_BYTES:
            return
        tree = json.dumps(content).encode()
        arrays[_TREE] = np.frombuffer(tree, np.uint8)
        path = self._folder / f"{name}.npz"
        # A folder of somebody else's, or a full disk.
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            with write_whole(path) as partial, partial.open("wb") as file:
                np.savez(file, **arrays)

    def _unpack(self, tree: Any, file: Mapping[str, np.ndarray]) -> Any:
        if not isinstance(tree, dict):
            return tree
        ((kind, content),) = tree.items()
        if kind == "array":
            return file[content]
        if kind in ("list", "tuple"):
            items = [self._unpack(item, file) for item in content]
            return items if kind == "list" else tuple(items)
        found = {key: self._unpack(item, file) for key, item in content}
        return found if kind == "dict" else self._classes[kind](**found)


def _pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of a value, whose arrays are added to the others."""
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        found = {field.name: getattr(value, field.name) for field in fields}
    elif hasattr(value, "_asdict"):
        found = value._asdict()
    elif isinstance(value, dict):
        found = value
    elif isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_pack(item, arrays) for item in value]}
    else:
        return value.item() if isinstance(value, np.generic) else value
    kind = "dict" if isinstance(value, dict) else type(value).__name__
    return {kind: [(key, _pack(item, arrays)) for key, item in found.items()]}
