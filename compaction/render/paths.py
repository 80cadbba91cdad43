"""Replace references by the paths of files that hold the same content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from compaction.context.blocks import Block, Ending
from compaction.tokens import count

FOLDER = r"^[\w./:@%+=,~-]*$"
LONGEST_FOLDER = 250
"""A folder that can stand in a stub: no spaces or quotes, so that a model sees where it ends, and
a JSON text stays one."""

_REFERENCE = re.compile(
    r"(?<![\w.:@/-])"
    r"(?:share:\d{1,18}(?::m\d{1,9}\.\d{1,9}@[0-9a-f]{8})?|m\d{1,9}\.\d{1,9}@[0-9a-f]{8})"
    r"(?![\w@])"
)


def references(text: str) -> list[str]:
    """Return the references to originals and shares in a text, each once."""
    return list(dict.fromkeys(_REFERENCE.findall(text)))


def references_of(block: Block) -> list[str]:
    """Return the references to its originals in a replacement; none for an original.

    An excerpt may quote others, which are content.
    """
    if block.replaces is None:
        return []
    return [ref for ref in references(block.text) if ref.partition("@")[0] in block.refs]


def block_with_paths(block: Block, paths: Mapping[str, str]) -> Block:
    """Return a replacement that names paths instead of its own references; the others stay."""
    own = {ref: paths[ref] for ref in references_of(block) if ref in paths}
    if not own:
        return block
    text = _with_paths(block.text, own)
    more = sum(count(path) - count(ref) for ref, path in own.items())
    return replace(block, text=text, chars=len(text), tokens=block.tokens + more)


def ending_with_paths(ending: Ending, paths: Mapping[str, str]) -> Ending:
    """Return the recited text with paths instead of the references that have one."""
    text, aside = (_with_paths(one, paths) for one in (ending.text, ending.aside))
    return replace(ending, text=text, aside=aside)


def _with_paths(text: str, paths: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda found: paths.get(found[0], found[0]), text)
