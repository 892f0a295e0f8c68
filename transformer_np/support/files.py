"""Files: written whole or not at all, held by one process at a time, read with errors of one line."""

import json
import os
import re
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname

from .platform import in_browser, module_with, write_in_place

# Windows and browsers have no locks: temporary files of killed processes stay
fcntl = module_with("fcntl", "flock")

LARGEST_TEXT = 1 << 30  # bytes of a text: more is a wrong file
LARGEST_JSON = 1 << 25  # bytes of a JSON file: as many as the largest tokenizers have
MOST_VALUES = 1_000_000  # in a JSON file, each of at most about 70 bytes in memory
PIECE = 1 << 20  # bytes that are read at once from a file that does not tell its size


def write_atomically(path, write):
    """Call `write(temporary path)`, flush the file to disk, then rename it to `path`.

    A killed process or a full disk leaves the old file or the new one, never a partial one. The temporary name is
    unique to this call and has the ending of `path`; if the process is killed, the next call removes that file. A
    device or a pipe, such as /dev/stdout, is written directly. A link stays: the file that it names is written.
    """
    path = Path(path)
    with naming(path):
        _write_atomically(path, write)


@contextmanager
def naming(path):
    """In the block, an OSError that names no file, such as "No space left on device", is given this path."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def _write_atomically(named, write):
    if named.exists() and not named.is_file():
        write(named)
        return
    path = Path(os.path.realpath(named))
    if in_browser():
        write_in_place(path, write)
        return
    _remove_abandoned(path)
    temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(4)}.new{path.suffix}")
    try:
        file = open(temporary, "xb")
    except OSError as error:  # the folder is missing, or nobody may write into it
        error.filename = str(named)
        raise
    with file:
        try:
            _lock(file)
            write(temporary)
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows cannot rename an open file
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Write a text as UTF-8 with "\\n" as line end, atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))


def write_new(texts):
    """Write {path: text or bytes} into folders that are made if necessary. ValueError, and nothing is written, if one
    exists or its folder is a file."""
    for path in texts:
        if path.parent.exists() and not path.parent.is_dir():
            raise ValueError(f"{path.parent} is a file; name a folder")
        if os.path.lexists(path):
            raise ValueError(f"{path} already exists and was not overwritten; choose another folder")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode() if isinstance(text, str) else text
        write_atomically(path, lambda temporary, content=content: temporary.write_bytes(content))


def _prefix(path):
    return f".{path.stem[:100]}."


def _remove_abandoned(path):
    """Remove temporary files of this path whose process was killed: no process holds their lock any more."""
    if fcntl is None:
        return
    with suppress(OSError):
        for other in path.parent.iterdir():
            mine = other.name.startswith(_prefix(path)) and other.name.endswith(f".new{path.suffix}")
            if mine and other.is_file() and not other.is_symlink():
                with open(other, "rb") as file:
                    if _lock(file):
                        other.unlink(missing_ok=True)


# --- one process at a time -------------------------------------------------------------------------------------------

LOCK = "in-use"


@contextmanager
def held(folder):
    """`with held(folder): …` keeps other processes out of the same block for this folder. The folder is created, and
    removed again if it is still empty at the end.

    The operating system ends the lock together with the process, so that a crash leaves none behind.

    Raises FileExistsError, which says who holds the folder; NotADirectoryError if it is a file; another OSError if it
    cannot be created or written.
    """
    folder = Path(folder)
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            what = "the folder of a run" if place == folder else f"a folder, for {folder}"
            raise NotADirectoryError(f"{place} is a file, expected {what}")
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    file = None
    try:
        file = _locked(path)
        yield
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            file.close()
        with suppress(OSError):  # not empty
            for place in made:
                place.rmdir()


def _locked(path):
    """The file at this path, open and locked by this process."""
    while True:
        file = open(path, "a+", encoding="utf-8")
        if not _lock(file):
            file.seek(0)
            holder = file.readline(200).strip() or "another process"
            file.close()
            how = "wait until it has finished, or choose another folder"
            raise FileExistsError(f"{path.parent} is in use by {holder}: {how}")
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                break
        file.close()  # the last holder has just removed this file: lock its successor
    with suppress(OSError):  # the lock also holds without this text (full disk)
        file.truncate(0)
        os.write(file.fileno(), f"process {os.getpid()} on {gethostname()}\n".encode())
    return file


def _lock(file):
    """Lock an open file  ->  False if another process holds it. A drive without locks counts as not held."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


# --- reading ---------------------------------------------------------------------------------------------------------


def check_is_file(path, expected="a file"):
    """Raise FileNotFoundError or IsADirectoryError for a path without a file, and ValueError for a device or a pipe,
    which could be endless or block forever."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected {expected}")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_file():
        raise ValueError(f"{path} is a device or a pipe, expected {expected}: save its content in a file first")


def read_bytes(path, expected="a file", most=LARGEST_TEXT):
    """The bytes of a file. Errors as in check_is_file, and ValueError for more than `most` bytes."""
    check_is_file(path, expected)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            pieces = [file.read(size)]
            while (read := sum(map(len, pieces))) <= most and (piece := file.read(PIECE)):  # /proc tells no sizes
                pieces.append(piece)
            if read <= most:
                data = b"".join(pieces)
                check_downloaded(path, data)
                return data
    raise ValueError(f"{path} has more than {most:,} bytes, expected {expected}")


def check_downloaded(path, beginning):
    """Raise ValueError if the first bytes of a file are those of a Git LFS pointer, which stands for the real file."""
    if beginning.startswith(b"version https://git-lfs.github.com/spec/"):
        how = "run `git lfs pull` in its folder, or download it again"
        raise ValueError(f"{path} is a Git LFS pointer, not the file itself: {how}")


def read_json(path):
    """The JSON data in a UTF-8 file. A damaged file raises ValueError with the file's name, and so does one with more
    than LARGEST_JSON bytes or MOST_VALUES values."""
    return parse_json(read_bytes(path, "a file with JSON", LARGEST_JSON), path)


def read_json_object(path, optional=False):
    """The JSON object in a file, as `read_json`; ValueError with the file's name for other JSON. optional: {} without
    the file"""
    found = {} if optional and not path.is_file() else read_json(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: it is not a JSON object")
    return found


def parse_json(text, path):
    """The JSON data in a text or bytes that were read from `path`; ValueError with the path if they are damaged."""
    if len(text) > MOST_VALUES and _count_values(text) > MOST_VALUES:  # lists of empty lists fill the memory
        raise ValueError(f"{path} is damaged: it has more than {MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: it is not JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is damaged: its JSON is nested too deeply") from None


def _count_values(text):
    """About the number of values in a JSON text: each begins the text or follows a comma or an opening bracket."""
    text = text.encode() if isinstance(text, str) else text
    outside = re.sub(rb'"(?:[^"\\]|\\.)*+"', b"", text)
    return sum(map(outside.count, (b",", b"[", b"{")))
