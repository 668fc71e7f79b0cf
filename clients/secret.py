"""The secret of a site: 32 random bytes in a file of its own, made on first use and readable by its owner only."""

import os
import secrets
import tempfile
from pathlib import Path

__all__ = ["DEFAULT_PATH", "site_secret"]

DEFAULT_PATH = Path("~/.fed_mwu/secret")
LENGTH = 32


def site_secret(path: Path = DEFAULT_PATH) -> bytes:
    """Return the secret in the file `path`, after making the file if there is none.

    Raises
    ------
    OSError
        If the file can neither be read nor made.
    ValueError
        If it holds something else.
    """
    path = path.expanduser()
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(path)
    content = path.read_bytes()
    if len(content) != LENGTH:
        raise ValueError(f"the secret's file must hold {LENGTH} bytes; remove it to get a new one")
    return content


def _make(path: Path) -> None:
    """Make the file in one step: of several processes that start together exactly one makes it, and none sees half."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)  # mkstemp gives mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
