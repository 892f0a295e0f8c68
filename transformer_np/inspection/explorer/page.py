"""A page as one HTML file: frame, body, styles, scripts and data put together. It asks for nothing from a network."""

import base64
import hashlib
import html
import json
import re
from pathlib import Path

from ...support.files import write_text

FOLDER = Path(__file__).parent
FILES = (
    "tensors weights pretrained tokenizers model backward decoding drawing state matrix_view steps steps_attention "
    "steps_layers contributions steps_ends diagram view_text view_changes view_effect view_similar view_heads "
    "view_residual view_training view_flow picture lessons stage address main"
)
SCRIPTS = ("elements.js", *(f"live_page/{name}.js" for name in FILES.split()))


class Page:
    """An HTML page that Jupyter shows in a frame; `save` writes it to a file for any browser.

    page: the HTML;  title: the name of the frame for a screen reader;  height: of the frame, in CSS pixels
    """

    title, height = "Living model", 780

    def __init__(self, page):
        self.page = page

    def save(self, path):
        """Write the page and return its path. Raises OSError if it cannot be written."""
        path = Path(path)
        write_text(path, self.page)
        return path

    def _repr_html_(self):
        # The frame separates the page's style and script from the notebook's; the sandbox allows the script, and to
        # save a picture.
        return (
            f'<iframe title="{self.title}" sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(self.page)}" '
            f'style="display: block; box-sizing: border-box; width: 100%; height: {self.height}px; '
            'border: 1px solid #888; resize: vertical"></iframe>'
        )


def assemble(data, weights):
    """The HTML of a page from the files in this folder, with its data as JSON.

    The weights are apart, because the page reads them later: it first says how much memory they need.

    The scripts become one function, in this order, so that a name of one file is known in those after it.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "})();\n"
    body, style = map(_part, ("live_page/page.html", "live_page/page.css"))
    values = {
        "title": Page.title, "body": body, "script": script, "style": style, "script_hash": _hash(script),
        "style_hash": _hash(style), "data": _json(data), "weights": _json(weights),
    }  # fmt: skip
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], _part("frame.html"))


def _json(data):
    """No token may end the script element that holds the data: in JSON every < can be written as \\u003c."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text):
    """The hash that identifies a script or a style in the page's content security policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _part(name):
    return (FOLDER / name).read_text(encoding="utf-8")
