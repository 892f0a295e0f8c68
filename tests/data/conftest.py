"""What the tests of the data share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """write(content) -> the path of a file with this text or these bytes."""

    def write(content):
        path = tmp_path / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
