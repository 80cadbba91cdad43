"""Mask JSON values: blocks as agents send them, their inputs and results."""

from __future__ import annotations

import re
from typing import Any

from compaction.context.wire import WireBlock, type_of
from compaction.redaction.together import Masks

_NAMES = ("name", "key", "header")
"""Fields that say what `value` beside them is, as in lists of headers."""
_TYPES_OF_MEDIA = ("media_type", "mediaType", "mime_type", "mimeType", "mime")
_MEDIA = r"(?:(?:image|audio|video)/[\w.+-]{1,60}|application/pdf)"
_BASE64 = r"[A-Za-z0-9+/\r\n]*(?:={1,2}\s*)?"
_BINARY = re.compile(_BASE64)
_DATA_URL = re.compile(f"data:{_MEDIA};base64,{_BASE64}")
_MEDIA_TYPE = re.compile(_MEDIA)
_FORM = frozenset({"type", "id", "tool_use_id", "role", *_TYPES_OF_MEDIA})
"""Fields of blocks that programs read."""
_KEYS = _FORM | {
    *("text", "thinking", "name", "input", "content", "is_error", "signature", "data", "source"),
    *("url", "tools", "description", "value", "title", "citations", "cache_control", "summary"),
    *("input_schema", "encrypted_content"),
}
_SIGNED = {
    "thinking": ("signature", "encrypted_content"),
    "redacted_thinking": ("data",),
}
_DESCRIBING = frozenset({"description", "title"})


def masked_value(masker: Masks, value: Any, name: str = "", *, is_form: bool = False) -> Any:
    """A JSON value with secrets masked, also those that are secrets because of a `name`.

    Binary data of images and other media stays: its base64 looks like a long random token. With
    `is_form`, the team's rules apply to descriptions only.
    """
    if isinstance(value, str):
        if _DATA_URL.fullmatch(value):
            return value
        if not name:
            return masker.mask(value, is_form=is_form)
        return _masked_text(masker, name, value, is_form=is_form)
    if isinstance(value, list):
        made = [masked_value(masker, item, name, is_form=is_form) for item in value]
        if len(value) == 2 and all(isinstance(one, str) for one in value):  # as of headers
            made[1] = _masked_text(masker, value[0], made[1], is_form=is_form)
        return made
    if isinstance(value, dict):
        return _masked_object(masker, value, is_form=is_form)
    if type(value) is int:
        masked = masked_value(masker, str(value), name, is_form=is_form)
        return value if masked == str(value) else masked
    return value


def _masked_object(masker: Masks, value: dict[str, Any], *, is_form: bool) -> dict[str, Any]:
    beside = ""
    if "value" in value:
        beside = next((one for n in _NAMES if isinstance(one := value.get(n), str)), "value")
    made = {}
    for key, item in value.items():
        masked_key = masker.mask(key, is_form=is_form or key in _KEYS)
        if _is_binary(value, key):
            made[masked_key] = item
            continue
        reads = is_form and key not in _DESCRIBING or key in _FORM and isinstance(item, str)
        named = beside if key == "value" else key
        made[masked_key] = masked_value(masker, item, named, is_form=reads)
    return made


def _is_binary(given: dict[str, Any], key: str) -> bool:
    """Whether a field of a media block, or of its source, has the media in base64."""
    if key == "result":
        is_media = given.get("type") == "image_generation_call"
    else:
        types = (given.get(name) for name in _TYPES_OF_MEDIA)
        is_media = key == "data" and any(
            isinstance(one, str) and _MEDIA_TYPE.fullmatch(one) for one in types
        )
    return is_media and isinstance(given[key], str) and bool(_BINARY.fullmatch(given[key]))


def masked_block(masker: Masks, block: WireBlock) -> WireBlock:
    """A block with its texts masked. What a provider signed or encrypted stays: it takes that back
    unchanged only. A signature goes if its text has masks, because it is none of that text.

    The team's rules leave names of tools, and of definitions all but descriptions: a model may use
    no other names.
    """
    form = type_of(block)
    if form == "tools":
        return _masked_object(masker, block, is_form=True)
    signed = _SIGNED.get(str(block.get("type")), ()) if form == "thinking" else ()
    kept = {name: block[name] for name in signed if name in block}
    rest = {name: value for name, value in block.items() if name not in kept}
    name = rest.pop("name", None) if form == "tool_use" else None
    masked = _masked_object(masker, rest, is_form=False)
    if name is not None:
        masked["name"] = masked_value(masker, name, is_form=True)
    if masked != rest and "thinking" in masked and masked["thinking"] != rest["thinking"]:
        kept.pop("signature", None)
    made = masked | kept
    in_order = {one: made.pop(one) for one in block if one in made}
    return in_order | made


def _masked_text(masker: Masks, name: str, value: str, *, is_form: bool = False) -> str:
    """A value that may be a secret only because of its name, as in `{"password": "…"}`."""
    before = f'"{name}": "'
    masked = masker.mask(f'{before}{value}"', is_form=is_form)
    if not masked.startswith(before):  # the name was masked, too
        return masker.mask(value, is_form=is_form)
    return masked[len(before) :].removesuffix('"')
