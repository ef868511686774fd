"""A folder has one process at a time."""

import threading
from pathlib import Path

import pytest

from tfcomp.config.errors import RunError
from tfcomp.storage.output_folders import lock_folder


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        with pytest.raises(RunError, match=f"working in {tmp_path}$"):
            lock_folder(tmp_path)
    lock_folder(tmp_path).close()


def test_a_waiting_process_gets_its_turn(tmp_path: Path) -> None:
    order = []

    def wait() -> None:
        with lock_folder(tmp_path, wait=True):
            order.append("second")

    with lock_folder(tmp_path):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
