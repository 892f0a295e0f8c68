"""The text for the package index: the README with links that work there, and the project's addresses.

The repository's address stands once, in pyproject.toml, at this hook. While it is empty, the project is
not published: then a link inside the repository becomes its text, and a picture is left out.
"""

import re

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)#]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)]+)\)")
_PAGES = {"Documentation": "docs/README.md", "Changelog": "CHANGELOG.md"}


def for_the_index(text, repository):
    """The README with absolute links into the repository, or without links if it has no address."""
    if repository:
        text = _PICTURE.sub(rf"![\1]({repository}/raw/main/\2)", text)
        return _LINK.sub(lambda link: f"[{link[1]}]({repository}/{_place(link[2])})", text)
    text = re.sub(r"^## Gallery\n.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)  # pictures alone
    text = re.sub(rf"^{_PICTURE.pattern}\n\n\*.*?\*\n\n", "", text, flags=re.DOTALL | re.MULTILINE)  # with its caption
    return _LINK.sub(r"\1", text)


def _place(path):
    return path if path.startswith("#") else f"blob/main/{path}"


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata):
        with open(f"{self.root}/README.md", encoding="utf-8") as file:
            text = file.read()
        repository = self.config["repository"]
        metadata["readme"] = {"content-type": "text/markdown", "text": for_the_index(text, repository)}
        if repository:
            metadata["urls"] = {"Source": repository} | {
                name: f"{repository}/blob/main/{page}" for name, page in _PAGES.items()
            }
