"""Offloads as files: the names that references have in a folder, and the content of each file."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from compaction.context import wire
from compaction.context.blocks import Block
from compaction.redaction.redact import redact
from compaction.render.content import media, sendable
from compaction.render.paths import (
    block_with_paths,
    ending_with_paths,
    references,
    references_of,
)
from sessions.actions.live.handing_out.read_back import NothingThere, original_of, pieces
from sessions.actions.live.managed import Plan
from sessions.models import Session
from sessions.models.masking.masking import rules_of
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import CHUNK, MissingBlob, contents

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_OWN = re.compile(r"m(\d{1,9})\.(\d{1,9})@([0-9a-f]{8})\Z")
_NAME = re.compile(
    r"(share-\d{1,18})?-?(m\d{1,9}\.\d{1,9}@[0-9a-f]{8})?(?:-\d{1,4})?\.(?:txt|png|jpg|gif|webp)\Z"
)

Names = tuple[str, ...]
"""The files of a reference: a text and then its images, or one image; empty if it has no content.
The first one stands in the context."""


def reference_in(name: str) -> str:
    """The reference that a path or the name of a file means; any other text unchanged."""
    match = _NAME.match(name.rpartition("/")[2])
    if match is None or not any(match.groups()):
        return name
    share = (match[1] or "").replace("-", ":")
    return ":".join(filter(None, (share, match[2])))


def names_of(session: Session, refs: Iterable[str]) -> dict[str, Names]:
    """The names of the files of each reference. They depend on the content alone."""
    listed = list(refs)
    own = {ref: match for ref in listed if (match := _OWN.match(ref))}
    shas = _shas(session, own)
    data = _readable(session, list(shas.values()))
    names: dict[str, Names] = dict.fromkeys(listed, ())
    for ref in listed:
        if ref not in own:
            names[ref] = _names_of_share(session, ref)
        elif shas.get(ref) in data:
            names[ref] = _names(ref, pieces(wire.decode(data[shas[ref]])))
    return names


def _shas(session: Session, own: Mapping[str, re.Match[str]]) -> dict[str, str]:
    """The whole hash of each block that exists as its reference says."""
    messages = sorted({int(match[1]) for match in own.values()})
    known: dict[tuple[int, int], str] = {}
    for begin in range(0, len(messages), CHUNK):
        rows = session.blocks.filter(message__seq__in=messages[begin : begin + CHUNK])
        columns = rows.values_list("message__seq", "index", "sha")
        known |= {(seq, index): sha for seq, index, sha in columns}
    there = ((ref, known.get((int(m[1]), int(m[2])), ""), m[3]) for ref, m in own.items())
    return {ref: sha for ref, sha, check in there if sha.startswith(check)}


def _readable(session: Session, shas: list[str]) -> dict[str, bytes]:
    """The blobs that can be read: a context does not fail for one it only refers to."""
    try:
        return contents(session, shas)
    except (MissingBlob, DamagedBlob):
        if len(shas) <= 1:
            return {}
    half = len(shas) // 2
    return _readable(session, shas[:half]) | _readable(session, shas[half:])


def _names_of_share(session: Session, ref: str) -> Names:
    try:
        _, parts = original_of(session, ref)
    except (NothingThere, MissingBlob, DamagedBlob):
        return ()
    return _names(ref, parts)


def _names(ref: str, parts: Sequence[wire.WireBlock]) -> Names:
    stem = ref.replace(":", "-")
    images = [ending for _, ending, _ in _images(parts)]
    if len(parts) == 1 and images:
        return (f"{stem}.{images[0]}",)
    return (f"{stem}.txt", *(f"{stem}-{at}.{ending}" for at, ending in enumerate(images, 1)))


def _images(parts: Sequence[wire.WireBlock]) -> Iterator[tuple[int, str, bytes]]:
    """The place, the ending and the bytes of each image; not of those that are an address."""
    for place, part in enumerate(parts):
        made = media(part) if wire.type_of(part) == "image" else None
        source = made["source"] if made is not None else {}
        if source.get("type") != "base64":
            continue
        try:
            data = base64.b64decode(source["data"], validate=True)
        except binascii.Error:
            continue
        yield place, _ENDINGS[source["media_type"]], data


def file_of(session: Session, name: str) -> bytes:
    """The content of a file by its name: an image, or the text in UTF-8 as `read_back` gives it.

    In a text with images, each stands as the name of its file. Secrets in shares are masked. Raises
    NothingThere, MissingBlob, DamagedBlob.
    """
    ref = reference_in(name)
    text, parts = original_of(session, ref)
    names, images = _names(ref, parts), list(_images(parts))
    if name not in names:
        raise NothingThere(f"This session has no file {sendable(name[:100])}.")
    if not name.endswith(".txt"):
        return images[len(images) - len(names) + names.index(name)][2]
    if images:
        shown = {
            place: f"[image {one}]" for (place, _, _), one in zip(images, names[1:], strict=True)
        }
        text = "\n".join(shown.get(at) or wire.text_of(part) for at, part in enumerate(parts))
        text = redact(text, rules_of(session.team_id)).text if ref.startswith("share:") else text
    return str(sendable(text)).encode()


@dataclass(frozen=True, slots=True)
class Named:
    """The files of a session's last context, so that the next one costs only what is new.

    `names` are those of each reference looked up; `blocks` are the replacements by id, each with
    its references and as the context shows it.
    """

    folder: str = ""
    names: Mapping[str, Names] = field(default_factory=dict)
    blocks: Mapping[str, tuple[Block, list[str], Block]] = field(default_factory=dict)


def with_paths(plan: Plan, folder: str, known: Named) -> tuple[Plan, Named, Names]:
    """A plan that names files below a folder instead of references, and the files it names.

    A reference without content stays. `known` is of the session's last context.
    """
    if known.folder != folder:
        known = Named(folder)
    replaced = [block for block in plan.blocks if block.replaces is not None]
    old = {one.id: known.blocks[one.id] for one in replaced if one.id in known.blocks}
    old = {one.id: old[one.id] for one in replaced if one.id in old and old[one.id][0] is one}
    new = {one.id: references_of(one) for one in replaced if one.id not in old}
    recited = references(plan.ending.whole)
    wanted = dict.fromkeys(chain(*new.values(), recited))
    names = known.names
    if missing := [ref for ref in wanted if ref not in names]:
        names = {**names, **names_of(plan.session, missing)}
    paths = {ref: f"{folder}/{names[ref][0]}" for ref in wanted if names[ref]}
    blocks = {
        one.id: old.get(one.id) or (one, new[one.id], block_with_paths(one, paths))
        for one in replaced
    }
    shown = tuple(blocks[one.id][2] if one.replaces is not None else one for one in plan.blocks)
    refs = dict.fromkeys(chain(*(listed for _, listed, _ in blocks.values()), recited))
    files = tuple(name for ref in refs for name in names[ref])
    plan = replace(plan, blocks=shown, ending=ending_with_paths(plan.ending, paths))
    return plan, Named(folder, names, blocks), files
