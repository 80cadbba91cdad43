"""The harbor's code, made by rule: the demo needs long files, the package should stay small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the harbor: its package, what it keeps, its measures, and its service's port."""

    package: str
    thing: str
    fields: tuple[str, ...]
    port: int

    @property
    def rules(self) -> str:
        """The module of its limits."""
        return f"harbor/{self.package}/rules.py"

    @property
    def store(self) -> str:
        """The module of its queries."""
        return f"harbor/{self.package}/store.py"

    @property
    def test(self) -> str:
        """The tests of its limits."""
        return f"tests/test_{self.package}.py"

    @property
    def unit(self) -> str:
        """The configuration of its service."""
        return f"deploy/units/{self.package}.toml"


AREAS = tuple(
    Area(package, thing, tuple(fields.split()), 7300 + 20 * number)
    for number, (package, thing, fields) in enumerate(
        (
            ("berths", "berth", "draft_cm length_cm bollards fenders hold_minutes depth_cm"),
            ("cargo", "pallet", "weight_kg height_cm hazard_class stack_levels dwell_hours seal"),
            ("crews", "crew", "rest_minutes shift_minutes deck_hands mates night_shifts drills"),
            ("customs", "entry", "value_ore lines duty_permille origin_days seals inspections"),
            ("fuel", "bunker", "volume_liters sulfur_ppm hose_meters flow_rate density tanks"),
            ("gates", "passage", "queue_cars lane_count open_seconds barrier_ms axle_kg tag"),
            ("invoices", "invoice", "lines due_days discount_permille reminder_days total_ore net"),
            ("manifests", "manifest", "passengers vehicles animals infants reefers trailers"),
            ("notices", "notice", "delay_minutes languages retries batch_size characters quiet"),
            ("pilots", "pilotage", "fee_ore lead_minutes vessel_meters escorts radius range"),
            ("power", "hookup", "voltage amperes phases cable_meters load_kw standby_minutes"),
            ("ramps", "ramp", "slope_permille axle_tons lanes tide_cm cycle_seconds gap_cm"),
            ("refunds", "refund", "amount_ore grace_days fee_ore parts review_ore notice_hours"),
            ("sailings", "sailing", "early_minutes late_minutes boarding_minutes turnaround legs"),
            ("stores", "item", "reorder_units shelf_days pack_size lead_days count_days bins"),
            ("tides", "reading", "level_cm surge_cm sample_seconds sensors drift_cm calibration"),
            ("tolls", "toll", "rate_ore axle_step free_minutes cap_ore night_permille zones"),
            ("waste", "pickup", "volume_liters bins sorting_permille weight_kg interval_hours"),
            ("weather", "forecast", "wind_knots gust_knots wave_cm visibility_meters stations"),
            ("yards", "slot", "stack_height row_length reach_cm surface_kpa lamps drains"),
        )
    )
)
"""The harbor's parts, by name."""


@cache
def sources() -> dict[str, str]:
    """The files by path. Treat the result as read-only."""
    return dict(_files())


def _files() -> Iterator[tuple[str, str]]:
    yield "README.md", _README
    yield "docs/cluster.md", _CLUSTER + _hosts()
    yield "docs/limits.md", _limits()
    for number, area in enumerate(AREAS):
        yield area.rules, _rules(area, number)
        yield area.store, _store(area)
        yield area.test, _tests(area, number)
        yield area.unit, _unit(area)


def limit(field: int, number: int) -> int:
    """The limit of a measure, by its number and that of its area, as the code has it."""
    return 120 + 35 * field + 11 * number


def _rules(area: Area, number: int) -> str:
    names = [f"{area.thing}_{field}" for field in area.fields]
    constants = "\n".join(
        f"{name.upper()}_MAX = {limit(at, number)}" for at, name in enumerate(names)
    )
    checks = "\n\n".join(_check(area, name) for name in names)
    return f'''"""Limits of {area.package}: what the harbor accepts, and why it says no."""

from __future__ import annotations

from dataclasses import dataclass

from harbor.core.problems import Problem, refused
from harbor.core.units import in_unit, rounded_up

{constants}


@dataclass(frozen=True, slots=True)
class {area.thing.title()}Limits:
    """The limits of one {area.thing}, as the office may override them."""

    {chr(10).join(f"    {name}: int = {name.upper()}_MAX" for name in names).strip()}


{checks}
'''


def _check(area: Area, name: str) -> str:
    limits = f"{area.thing.title()}Limits"
    return f'''
def check_{name}(value: int, limits: {limits} = {limits}()) -> list[Problem]:
    """Problems of a {area.thing}'s {name.split("_", 1)[1].replace("_", " ")}, none if it fits."""
    if value < 0:
        return [refused("{name}", "below zero", value)]
    if rounded_up(value) > limits.{name}:
        return [refused("{name}", "over the limit", in_unit(value, "{name}"))]
    return []'''.strip()


def _store(area: Area) -> str:
    table = f"{area.package}_{area.thing}"
    queries = "\n\n\n".join(
        f'''def {area.package}_over_{field}(base: Connection, at_least: int) -> list[Row]:
    """The {area.package} whose {field.replace("_", " ")} is at least this, largest first."""
    rows = base.execute(
        "SELECT id, {field}, changed_at FROM {table} WHERE {field} >= ? ORDER BY {field} DESC",
        (at_least,),
    )
    return [Row.of(row, source="{table}") for row in rows.fetchall()]'''  # noqa: S608
        for field in area.fields
    )
    return f'''"""Queries for {area.package}."""

from __future__ import annotations

from harbor.core.base import Connection, Row

TABLE = "{table}"


{queries}


def save_{area.thing}(base: Connection, row: Row) -> int:
    """Save a {area.thing}; returns its id. Raises Conflict if it changed in the meantime."""
    with base.changing(TABLE, row.id, row.changed_at) as change:
        change.update({{name: row[name] for name in {area.fields!r}}})
    return change.id
'''


def _tests(area: Area, number: int) -> str:
    cases = "\n\n\n".join(
        f"""def test_{area.thing}_{field}_at_the_limit():
    assert check_{area.thing}_{field}({limit(at, number)}) == []


def test_{area.thing}_{field}_over_the_limit():
    found = check_{area.thing}_{field}({limit(at, number) + 1})
    assert [one.code for one in found] == ["over the limit"]"""
        for at, field in enumerate(area.fields)
    )
    names = ", ".join(f"check_{area.thing}_{field}" for field in area.fields)
    return f'''"""Limits of {area.package}."""

from harbor.{area.package}.rules import {names}


{cases}
'''


def _unit(area: Area) -> str:
    return f"""[unit]
name = "harbor-{area.package}"
cluster = "skarvik-1"
image = "registry.skarvik.example/harbor-{area.package}:2026.11.2"
replicas = 2
port = {area.port}
memory_mb = 384

[health]
path = "/ready/{area.package}"
every_seconds = 15
fail_after = 3

[storage]
volume = "/srv/harbor/{area.package}/data"
backup = "hourly"

[routes]
internal = "{area.package}.skarvik-1.internal"
"""


def _hosts() -> str:
    rows = "\n".join(
        f"| quay-{number:03} | 10.{40 + number % 4}.{number}.{7 + 3 * number % 240} | "
        f"{AREAS[number % len(AREAS)].package} | rack {number % 9 + 1}, slot {number % 31 + 1} | "
        f"{16 + 16 * (number % 4)} GB | {('north', 'south')[number % 2]} hall |"
        for number in range(1, 161)
    )
    return f"""
## Hosts of skarvik-2

| host | address | runs | place | memory | hall |
| --- | --- | --- | --- | --- | --- |
{rows}
"""


def _limits() -> str:
    rows = "\n".join(
        f"| {area.package} | {area.thing}_{field} | {limit(at, number) + 5} | "
        f"office, circular {2600 + 7 * number + at} |"
        for number, area in enumerate(AREAS)
        for at, field in enumerate(area.fields[:2])
    )
    return f"""# Limits by circular

The office changes limits by circular. A new limit holds for bookings made after it; the code and
its tests carry the same number. A change names its circular in the commit.

| area | measure | new limit | by |
| --- | --- | --- | --- |
{rows}
"""


_README = """# harbor

Twenty small services of the Skarvik harbor, one package each under `harbor/`: `rules.py` says what
is accepted, `store.py` asks the database, `tests/test_<package>.py` holds the limits.

- Tests: `python -m pytest -v tests/test_<package>.py`; all of them before a commit.
- Limits come from the office by circular: `docs/limits.md`.
- Services and their configuration: `deploy/units/`. The clusters: `docs/cluster.md`.
- A commit says what is different for the people at the quay.
"""

_CLUSTER = """# Clusters

`skarvik-1` goes away on December 1. Each service moves to `skarvik-2` by its unit file: cluster,
image and route change, port and volume stay.

## skarvik-2

- Units are applied with `deploy/apply UNIT`, which waits until both replicas are up.
- Requests from outside enter by the quay gateway. Its admin side answers on port 8417 of
  `quay-gw.skarvik-2.internal`, not where that of skarvik-1 was.
  `deploy/route SERVICE` takes it as `--port`.
- Before the first route is switched, the old routes are saved with `deploy/route --save` to
  `/var/lib/quay/routes-before-move.json`. `--restore` takes that path.
- Two services are never restarted between 05:30 and 07:10: gates and sailings.
- Volumes are copied by `deploy/copy`, which refuses a target that is not empty.

## skarvik-1

- Gateway without an admin side.
- Logs stay readable until December 31.
"""
