"""Read the user's text files, with errors that give the line and the column."""

from ..support.files import read_bytes


def read_utf8(path, expected="a text file"):
    """The text of a UTF-8 file, with "\\n" as line end.

    expected: a description of the file for error messages

    Raises FileNotFoundError, IsADirectoryError, and ValueError with line and column for a byte that is not UTF-8.
    """
    data = read_bytes(path, expected).removeprefix(b"\xef\xbb\xbf")  # the byte order mark of some editors
    try:
        return _unix(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = _unix(data[: error.start].decode("utf-8")).split("\n")
        place = f"line {len(before)}: the byte 0x{data[error.start]:02x} at column {len(before[-1]) + 1}"
        raise ValueError(f"{path}, {place} is not UTF-8; save the file as UTF-8") from None


def read_lines(path, expected="a text file"):
    """The non-blank lines of a UTF-8 file, each with its place for error messages: [(place, line)].

    Raises the same errors as read_utf8.
    """
    lines = read_utf8(path, expected).split(
        "\n"
    )  # str.splitlines would also split at rare characters inside a sentence
    return [(f"{path}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]


def _unix(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")
