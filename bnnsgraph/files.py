"""Writing files so that a reader finds the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import os


def write_atomically(path: str | os.PathLike[str], *parts: bytes | memoryview) -> None:
    """Write ``parts`` beside ``path`` and then put them in its place; when that fails, ``path`` is as it was.

    The bytes reach the disk before the name changes. An error of the system names ``path``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(os.path.join(folder, "data"), b"bytes")
    ...     os.listdir(folder)
    ['data']
    """
    target = os.path.realpath(path)  # of a link, what it points to is replaced
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    try:
        with open(temporary, "xb") as file:  # with the permissions that any new file has
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(path), None
        raise
