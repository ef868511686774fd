"""Reads archives of other people in memory; nothing is ever extracted.

`tarfile` follows links that an archive brings along, so that extracting can
write anywhere (CVE-2025-4517). Here regular files alone are read, by the names
that the caller expects, up to limits of size and number.
"""

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tfcomp.storage.files import MAX_UNPACKED, DamagedFileError, read_xz

ENDING = ".tar.xz"
# The largest archive in docs/ has 1,156.
MAX_MEMBERS = 2**14
# Names of files and folders, of letters that a shell and a page show as such.
_NAME = re.compile(r"[\w.,=+@-][\w.,=+@ -]{0,199}")


def read_archive(
    path: Path, wanted: re.Pattern[str]
) -> dict[PurePosixPath, bytes]:
    """Returns the files of a `.tar.xz` whose whole names match a pattern.

    Raises:
        DamagedFileError: If the file is no such archive, too large, or has a
            link, a device, or a name that leads out of a folder.
        OSError: If it cannot be opened.
    """
    content = read_xz(path)
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for member in _list_members(path, tar):
                if not wanted.fullmatch(member.name):
                    continue
                file = tar.extractfile(member)
                assert file is not None  # it is a regular file
                files[PurePosixPath(member.name)] = file.read()
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise DamagedFileError(path, error) from error
    return files


def _list_members(
    path: Path, tar: tarfile.TarFile
) -> Iterator[tarfile.TarInfo]:
    """Yields regular files; raises DamagedFileError for any other member."""
    size = 0
    for number, member in enumerate(tar):
        size += max(member.size, 0)
        parts = member.name.split("/")
        if number >= MAX_MEMBERS or size > MAX_UNPACKED or member.size < 0:
            raise DamagedFileError(path, "it has too many or too large members")
        if ".." in parts or not all(map(_NAME.fullmatch, parts)):
            raise DamagedFileError(
                path, f"it has a member {member.name[:60]!r}"
            )
        if member.isdir():
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or getattr(
            member, "sparse", None
        ):
            raise DamagedFileError(
                path, f"{member.name[:60]} is no regular file"
            )
        yield member
