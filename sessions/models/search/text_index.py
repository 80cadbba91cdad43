"""The index of block texts: which blocks hold which words. SQL of both databases.

A row per block, and per replacement of a managed context: its distinct words and its labels (team,
session, tool, kind, error), without their order. On SQLite an FTS5 table that keeps no text, no
positions and no lengths: 15 % of the stored bytes instead of 49 %. It gets words separated by
blanks, and splits none, because what is not ASCII counts as a letter there. On PostgreSQL an array
of the words' CRC-32 with a GIN index: words may share one, so what it finds must be looked for in
the texts.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import connection, transaction

TABLE = "agent_sessions_blockwords"

FREQUENT = 5_000
"""On PostgreSQL: blocks with the words of a query up to which all are read and sorted; of more, the
newest are found by walking from the newest block back."""

NEWEST = (10_000, 50_000)
"""On PostgreSQL: blocks that are walked through, newest first, before the index is asked, which
takes as long as the words are frequent (ours: some 15 ms, where two words of 500,000 blocks took
180). The second stretch only if the first has its share of what is wanted."""

REPLACEMENTS = -(2**52)
"""Added to the keys of replacements, so that they come after all blocks."""

IndexRow = tuple[int, Collection[str]]
"""The key of a block or replacement, and its words and labels."""


def add(rows: Iterable[IndexRow]) -> None:
    """Add blocks that are not in the index."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # The words are ours: letters and digits, or the mark of a label.
            cursor.executemany(
                f"INSERT INTO {TABLE} (rowid, words) VALUES (%s, %s)",  # noqa: S608
                [(pk, _joined(words)) for pk, words in rows],
            )
        else:
            cursor.executemany(
                f"INSERT INTO {TABLE} (block_id, words) VALUES (%s, %s)",  # noqa: S608
                [(pk, _hashed(words)) for pk, words in rows],
            )


def remove(rows: Iterable[IndexRow]) -> None:
    """Remove blocks that are in the index with exactly these words."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executemany(
                f"INSERT INTO {TABLE} ({TABLE}, rowid, words) VALUES ('delete', %s, %s)",  # noqa: S608
                [(pk, _joined(words)) for pk, words in rows],
            )
        else:
            keys = [pk for pk, _ in rows]
            cursor.execute(f"DELETE FROM {TABLE} WHERE block_id = ANY(%s)", [keys])  # noqa: S608


def merge(pages: int, table: str = TABLE) -> int:
    """On SQLite, merge about so many pages of an index, so that removed words leave the file;
    from the start if negative. Returns below 2 once there is nothing left to merge."""
    if connection.vendor != "sqlite":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT total_changes()")
        before = cursor.fetchone()[0]
        cursor.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', %s)", [pages])  # noqa: S608
        cursor.execute("SELECT total_changes()")
        return int(cursor.fetchone()[0] - before)


def _joined(words: Collection[str]) -> str:
    return " ".join(sorted(words))


def _hashed(words: Collection[str]) -> list[int]:
    """The CRC-32 of each word, as PostgreSQL's signed integers of 32 bits."""
    return sorted({zlib.crc32(word.encode("utf-8", "replace")) - 2**31 for word in words})


def holding(
    words: Sequence[str], any_of: Sequence[str], *, below: int | None, limit: int
) -> list[int]:
    """Keys of blocks that have all these words and one of `any_of`, newest first; on PostgreSQL
    perhaps others, too.

    Only those below a key, if given; both lists must have a word.
    """
    if connection.vendor == "sqlite":
        every = " AND ".join(map(_quoted, words))
        asked = f"{every} AND ({' OR '.join(map(_quoted, any_of))})"
        with connection.cursor() as cursor:
            return _keys(cursor, "rowid", f"{TABLE} MATCH %s", [asked], below, limit)
    return _holding_postgresql([_hashed(words), _hashed(any_of)], below, limit)


def _holding_postgresql(asked: list[list[int]], below: int | None, limit: int) -> list[int]:
    """PostgreSQL guesses how frequent words are together. Where it guesses wrong, it walks through
    all blocks for a rare word; so it has no choice."""
    condition = "words @> %s::integer[] AND words && %s::integer[]"
    walk = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off"
    look_up = "SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(walk)
        found: list[int] = []
        if len(asked[-1]) == 1:  # of few sessions, all blocks are looked up faster
            near, far = NEWEST
            newest = f"{condition} AND block_id >= {_LAST} - %s"
            found = _keys(cursor, "block_id", newest, [*asked, below, near], below, limit)
            if len(found) < limit <= len(found) * far / near:
                found = _keys(cursor, "block_id", newest, [*asked, below, far], below, limit)
        if len(found) < limit:
            cursor.execute(look_up)
            found = _keys(cursor, "block_id", condition, asked, below, FREQUENT + 1, ordered=False)
            cursor.execute(f"SET LOCAL enable_indexscan = on; {walk}")
            if len(found) > FREQUENT:
                found = _keys(cursor, "block_id", condition, asked, below, limit)
        cursor.execute("SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on")
    return sorted(found, reverse=True)[:limit]


_LAST = f"COALESCE(%s, (SELECT MAX(block_id) FROM {TABLE}))"  # noqa: S608


def _keys(
    cursor: Any,
    column: str,
    condition: str,
    asked: Sequence[object],
    below: int | None,
    limit: int,
    *,
    ordered: bool = True,
) -> list[int]:
    values = list(asked)
    if below is not None:
        condition += f" AND {column} < %s"
        values.append(below)
    order = f"ORDER BY {column} DESC" if ordered else ""
    # Column and table names are ours; words are passed as parameters.
    sql = f"SELECT {column} FROM {TABLE} WHERE {condition} {order} LIMIT %s"  # noqa: S608
    cursor.execute(sql, [*values, limit])
    return [pk for (pk,) in cursor.fetchall()]


def _quoted(word: str) -> str:
    return f'"{word}"'
