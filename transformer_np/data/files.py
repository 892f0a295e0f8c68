"""Read the user's text files, with errors that give the line and the column."""

from ..support.checks import short
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


def read_columns(path, names, form, what, tabs=-1):
    """The first two columns of each line of a UTF-8 file, [(text, text)], without blank lines and white space around.

    names: of the columns, for messages; form: of a line; what: the lines are; tabs: the most that separate columns

    Raises the errors of read_utf8, and ValueError with the line number for a line of another form.
    """
    found = []
    # str.splitlines would also split at rare characters inside a sentence
    for number, line in enumerate(read_utf8(path, f"a text file with {form} on each line").split("\n"), 1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t", tabs)]
        if len(columns) < 2:
            raise ValueError(f"{path}, line {number}: expected {form}; there is no tab in {short(columns[0])}")
        for name, column in zip(names, columns, strict=False):
            if not column:
                raise ValueError(f"{path}, line {number}: the {name} is empty")
        found.append((columns[0], columns[1]))
    if not found:
        raise ValueError(f"{path} has no {what}")
    return found


def _unix(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")
