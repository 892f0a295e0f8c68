"""The user's text files: opened, decoded and cut into lines, with an error that says where something is wrong."""

from pathlib import Path


def read_utf8(path, expected="a text file"):
    """The text of a UTF-8 file, its line ends as "\\n".

    Raises FileNotFoundError, IsADirectoryError that says what was `expected`, and ValueError with line and column for a
    byte that is not UTF-8.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected {expected}")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")  # the byte order mark that some editors put first
    try:
        return _unix(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = _unix(data[: error.start].decode("utf-8")).split("\n")
        place = f"line {len(before)}: the byte 0x{data[error.start]:02x} at column {len(before[-1]) + 1}"
        raise ValueError(f"{path}, {place} is not UTF-8; save the file as UTF-8") from None


def read_lines(path, expected="a text file"):
    """The lines of a UTF-8 file that are not blank, each behind its place for an error message: [(place, line)].

    Raises what read_utf8 raises.
    """
    lines = read_utf8(path, expected).split("\n")  # str.splitlines would take rare characters inside a sentence too
    return [(f"{path}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]


def _unix(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")
