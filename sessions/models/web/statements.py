"""Queries that are composed once and then only executed.

Django composes a query again at every use, which costs several times what the database needs for
it. Statements are for the ways that every message of an agent takes; all other code uses querysets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.expressions import Expression
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql import DeleteQuery, UpdateQuery


class _Slot(NamedTuple):
    """The place of a value among a statement's parameters."""

    name: str
    field: models.Field[Any, Any]


class Given(Expression):
    """A value that is known when the statement is executed; `field` says how it is stored."""

    def __init__(self, name: str, field: models.Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any]]:  # noqa: ARG002
        """A placeholder, with the slot as its parameter."""
        return "%s", (_Slot(self.name, self.output_field),)


_PLACE = re.compile("(?<!%)%s")


def _written(constant: int | str) -> str:
    if isinstance(constant, int):
        return str(constant)
    return "'" + str(constant).replace("'", "''").replace("%", "%%") + "'"


def given_uuid(name: str) -> Given:
    """A UUID known at execution."""
    return Given(name, models.UUIDField())


def given_int(name: str) -> Given:
    """An integer known at execution."""
    return Given(name, models.BigIntegerField())


def given_text(name: str) -> Given:
    """A text known at execution."""
    return Given(name, models.TextField())


def given_flag(name: str) -> Given:
    """True or false, known at execution."""
    return Given(name, models.BooleanField())


def given_time(name: str) -> Given:
    """A moment known at execution."""
    return Given(name, models.DateTimeField())


class _Composed(NamedTuple):
    sql: str
    parameters: Sequence[Any]

    @classmethod
    def of(cls, compiler: Any) -> _Composed:
        """A query with its own constants written out.

        SQLite prepares a statement again whenever a value is bound that a partial index depends on.
        """
        sql, parameters = compiler.as_sql()
        first, *rest = _PLACE.split(sql)
        parts, open_ones = [first], []
        for value, text in zip(parameters, rest, strict=True):
            constant = isinstance(value, int | str) and not isinstance(value, bool)
            parts += [_written(value) if constant else "%s", text]
            open_ones += [] if constant else [value]
        return cls("".join(parts), open_ones)

    @contextmanager
    def executed(self, given: dict[str, Any]) -> Iterator[Any]:
        """A cursor that has executed it, with the given values in the database's form."""
        # Django's own `connection` looks this one up at each use of an attribute.
        database = connections[DEFAULT_DB_ALIAS]
        with database.cursor() as cursor:
            cursor.execute(self.sql, self._values(given, database))
            yield cursor

    def _values(self, given: dict[str, Any], database: Any) -> list[Any]:
        return [
            one.field.get_db_prep_value(given[one.name], database) if type(one) is _Slot else one
            for one in self.parameters
        ]

    def run(self, given: dict[str, Any]) -> int:
        """Execute it; return the number of rows matched."""
        with self.executed(given) as cursor:
            return int(cursor.rowcount)

    def run_all(self, given: Iterable[dict[str, Any]]) -> None:
        """Execute it for each of these values, without waiting for the database each time."""
        database = connections[DEFAULT_DB_ALIAS]
        with database.cursor() as cursor:
            cursor.executemany(self.sql, [self._values(one, database) for one in given])


_first_uses: list[Callable[[], object]] = []
_COMMON_SIZES = 5
"""Sizes of a `StatementAmong` that are composed early: up to 16 values."""


def compose_all() -> None:
    """Compose all statements now, for processes that are forked from this one; it takes a tenth of
    a second. PostgreSQL composes some only within a transaction, so that it is not for it."""
    for use in _first_uses[:]:
        use()


class Statement:
    """A query with `Given` values; `build` makes its queryset at the first use.

    Rows are objects, or tuples if the queryset is a `values_list`; prefetches are not followed.
    """

    def __init__(self, build: Callable[[], models.QuerySet[Any, Any]]) -> None:
        self._build = build
        _first_uses.append(lambda: self._read)

    @cached_property
    def _read(self) -> tuple[_Composed, Callable[[list[Sequence[Any]]], list[Any]]]:
        queryset = self._build()
        compiler = queryset.query.get_compiler(queryset.db)
        composed = _Composed.of(compiler)
        converters = compiler.get_converters(
            [selected[0] for selected in compiler.select[: compiler.col_count]]
        )

        def converted(rows: list[Sequence[Any]]) -> list[Any]:
            return list(compiler.apply_converters(rows, converters)) if converters else rows

        if not issubclass(queryset._iterable_class, ModelIterable):
            return composed, lambda rows: [tuple(row) for row in converted(rows)]
        made_of = _maker(compiler, queryset.db)
        return composed, lambda rows: [made_of(row) for row in converted(rows)]

    def rows(self, **given: Any) -> list[Any]:
        """All rows."""
        composed, read = self._read
        with composed.executed(given) as cursor:
            found = cursor.fetchall()
        return read(found) if found else []

    def first(self, **given: Any) -> Any:
        """The first row, or None."""
        rows = self.rows(**given)
        return rows[0] if rows else None

    def column(self, **given: Any) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in self.rows(**given)]


class StatementAmong:
    """A query for many values of one column; `build` gets them as a list for `__in`.

    It is composed once for each power of two, and the last value is repeated to fill that number.
    """

    AT_ONCE = 256

    def __init__(
        self,
        build: Callable[[list[Any]], models.QuerySet[Any, Any]],
        given: Callable[[str], Given] = given_text,
    ) -> None:
        self._build, self._given = build, given
        self._sized: dict[int, Statement] = {}
        _first_uses.append(lambda: [self._of(1 << size)._read for size in range(_COMMON_SIZES)])

    def rows(self, among: Sequence[Any], **given: Any) -> list[Any]:
        """The rows for all distinct values."""
        found: list[Any] = []
        wanted = list(dict.fromkeys(among))
        for start in range(0, len(wanted), self.AT_ONCE):
            chunk = wanted[start : start + self.AT_ONCE]
            size = 1 << (len(chunk) - 1).bit_length()
            chunk += chunk[-1:] * (size - len(chunk))
            named = {f"among_{number}": value for number, value in enumerate(chunk)}
            found += self._of(size).rows(**given, **named)
        return found

    def _of(self, size: int) -> Statement:
        if size not in self._sized:
            names = [self._given(f"among_{number}") for number in range(size)]
            self._sized[size] = Statement(lambda: self._build(names))
        return self._sized[size]


class Update:
    """An UPDATE with `Given` values; `build` makes its queryset and the new values at the first
    use."""

    def __init__(
        self, build: Callable[[], tuple[models.QuerySet[Any, Any], dict[str, Any]]]
    ) -> None:
        self._build = build
        _first_uses.append(lambda: self._composed)

    @cached_property
    def _composed(self) -> _Composed:
        queryset, values = self._build()
        query: Any = queryset.query.chain(UpdateQuery)
        fields = {field.attname: field for field in queryset.model._meta.concrete_fields}
        query.add_update_fields([(fields[name], None, value) for name, value in values.items()])
        return _Composed.of(query.get_compiler(queryset.db))

    def run(self, **given: Any) -> int:
        """Execute it; return the number of rows matched."""
        return self._composed.run(given)

    def run_all(self, given: Iterable[dict[str, Any]]) -> None:
        """Execute it for each of these values: for many, a fraction of the work of `run`."""
        self._composed.run_all(given)


class Delete:
    """A DELETE with `Given` values; rows that refer to the deleted ones are not looked up."""

    def __init__(self, build: Callable[[], models.QuerySet[Any, Any]]) -> None:
        self._build = build
        _first_uses.append(lambda: self._composed)

    @cached_property
    def _composed(self) -> _Composed:
        queryset = self._build()
        query = queryset.query.chain(DeleteQuery)
        return _Composed.of(query.get_compiler(queryset.db))

    def run(self, **given: Any) -> int:
        """Execute it; return the number of rows deleted."""
        return self._composed.run(given)


def given_columns(model: type[models.Model], names: Sequence[str]) -> dict[str, Given]:
    """Values of columns, under the names of the attributes that hold them."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return {name: Given(name, _plain(fields[name])) for name in names}


def _plain(field: Any) -> models.Field[Any, Any]:
    """A foreign key is stored as what it points at."""
    while field.is_relation:
        field = field.target_field
    found: models.Field[Any, Any] = field
    return found


def insert(
    model: type[models.Model],
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    known: bool = False,
) -> int:
    """Insert rows of values in the order of `columns`; with `known`, skip rows that already exist.

    Returns the number inserted. Values must be in the database's form: UUID keys through
    `stored_uuid`. Omitted columns need a default in the database.
    """
    if not rows:
        return 0
    with connection.cursor() as cursor:
        cursor.executemany(_insertion(model, tuple(columns), known), rows)
        return int(cursor.rowcount)


def insert_object(made: models.Model, *, known: bool = False) -> bool:
    """Insert an object that has its key; with `known`, return False if it conflicts with
    another."""
    fields: Any = made._meta.concrete_fields
    row = [field.get_db_prep_save(field.pre_save(made, True), connection) for field in fields]
    done = insert(type(made), [field.column for field in fields], [row], known=known)
    made._state.adding = not done
    made._state.db = connection.alias
    return bool(done)


def stored_uuid(value: UUID) -> Any:
    """A UUID in the form this database stores."""
    return value if connection.features.has_native_uuid_field else value.hex


@cache
def _insertion(model: type[models.Model], columns: tuple[str, ...], known: bool) -> str:
    quote = connection.ops.quote_name
    names, marks = ", ".join(map(quote, columns)), ", ".join(["%s"] * len(columns))
    ignore = " ON CONFLICT DO NOTHING" if known else ""
    # Names are our own columns; values are passed as parameters.
    return f"INSERT INTO {quote(model._meta.db_table)} ({names}) VALUES ({marks}){ignore}"  # noqa: S608


def _maker(compiler: Any, using: str) -> Callable[[Any], Any]:
    """Makes the object of a row, as Django's ModelIterable does."""
    info = compiler.klass_info
    model, places = info["model"], info["select_fields"]
    start, end = places[0], places[-1] + 1
    # A set: if columns are deferred, Django looks for each field in it.
    names = {selected[0].target.attname for selected in compiler.select[start:end]}
    related = get_related_populators(info, compiler.select, using)  # type: ignore[call-arg]

    def made_of(row: Any) -> Any:
        made = model.from_db(using, names, row[start:end])
        for one in related:
            one.populate(row, made)
        for name, place in compiler.annotation_col_map.items():
            setattr(made, name, row[place])
        return made

    return made_of
