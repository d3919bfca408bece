"""What PyPI shows is README.md, whose links and pictures lead to files of the repository.

They lead to the tag of the version there, if `[project.urls]` has a `Source`, and else name the files.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https://)([^)#\s]+)([^)\s]*)\)")
MARK = re.compile(r"<!--.*?-->\n\n?")  # of `benchmarks.report`


def described(text, source, version):
    """The text, with links that work elsewhere."""

    def linked(match):
        picture, words, file, anchor = match.groups()
        if source:
            return f"{picture}[{words}]({source}/{'raw' if picture else 'blob'}/v{version}/{file}{anchor})"
        return f"Picture: {words} (`{file}`)." if picture else f"{words} (`{file}`)"

    return LINK.sub(linked, MARK.sub("", text))


class Description(MetadataHookInterface):
    """Called by hatchling, which knows the version by then."""

    def update(self, metadata):
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = described(text, metadata.get("urls", {}).get("Source"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
