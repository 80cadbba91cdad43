"""What the export of a team consists of besides its sessions, and what it leaves out, and why."""

from __future__ import annotations

from django.db.models import Model

from sessions.actions.imports.exported import TEXT, Table
from sessions.models import (
    Artefact,
    Board,
    Budget,
    Delivery,
    Gathering,
    IncomingMasking,
    MaskedCount,
    MaskingRule,
    Note,
    NotificationChannel,
    NotificationRule,
    Opening,
    Policy,
    PolicyVersion,
    Quota,
    ReviewRules,
    Rollout,
    SavedSearch,
    Session,
    Share,
    Subscription,
    Team,
    Use,
)


def _all_but(model: type[Model], *names: str) -> frozenset[str]:
    return frozenset(one.name for one in model._meta.concrete_fields) - set(names)


POLICIES = (
    Table("policy", Policy, "team"),
    Table("version", PolicyVersion, "policy__team"),
    Table("team", Team, "pk", _all_but(Team, "active")),
    Table("rollout", Rollout, "team", order=("created", "began")),
)
"""What sessions refer to: an import stores it before them."""

BESIDE = (
    Table(
        "placed",
        Session,
        "team",
        _all_but(Session, "parent", "rollout", "demo"),
        order=("created", "external_id"),
    ),
    Table("artefact", Artefact, "session__team", contents=(("sha", TEXT),)),
    Table("board", Board, "team"),
    Table("share", Share, "team"),
    Table("note", Note, "board__team"),
    Table("subscription", Subscription, "session__team"),
    Table("delivery", Delivery, "session__team"),
    Table("gathering", Gathering, "session__team", order=("session__created",)),
    Table("opening", Opening, "session__team", contents=(("sha", TEXT),),
          order=("session__created",)),
    Table("budget", Budget, "team", order=("created",)),
    Table("use", Use, "budget__team", frozenset({"reserved_tokens", "reserved_microusd"})),
    Table("quota", Quota, "team"),
    Table("review_rules", ReviewRules, "team"),
    Table("saved_search", SavedSearch, "team"),
    Table("channel", NotificationChannel, "team", frozenset({"address", "secret"}),
          order=("created",)),
    Table("notification_rule", NotificationRule, "team", order=("created",)),
    Table("masked_count", MaskedCount, "team"),
    Table("masking_rule", MaskingRule, "team", order=("added",)),
    Table("incoming_masking", IncomingMasking, "team"),
)  # fmt: skip
"""In the order of the file: a row comes after those it refers to."""

TEAM_TABLES = {table.name: table for table in (*POLICIES, *BESIDE)}

_PEOPLE = "people, and what proves who they are, belong to a server"
_AGAIN = "follows from the rest, and is computed again"
_HERE = "is about work of this server"

LEFT_OUT = {
    "AuditEntry": "the log is of what happened on a server, and its chain proves that",
    "Membership": _PEOPLE,
    "Invitation": _PEOPLE,
    "Key": _PEOPLE,
    "Visit": _PEOPLE,
    "Answer": _HERE,
    "Reservation": _HERE,
    "Approval": _HERE,
    "AcceptedRequests": _HERE,
    "RefusedRequest": _HERE,
    "Import": _HERE,
    "ImportFile": _HERE,
    "SkippedRecord": _HERE,
    "Job": _HERE,
    "Notification": _HERE,
    "QuotaUse": _HERE,
    "Erasure": "receipts, and what must not come back, stay where it was erased",
    "ErasedSession": "receipts, and what must not come back, stay where it was erased",
    "ErasedBlob": "receipts, and what must not come back, stay where it was erased",
    "Hold": "a hold is on the data where it was set, and stays there",
    "Retention": "an import must not begin to erase; set it again",
    "Archive": "a session is exported as it is unpacked",
    "Blob": "content stands in the lines that use it",
    "StoredBytes": _AGAIN,
    "DayTotals": _AGAIN,
    "BreakTotals": _AGAIN,
    "Assessment": _AGAIN,
    "Simulation": _AGAIN,
    "SimulationResult": _AGAIN,
    "Tuning": _AGAIN,
    "TuningTrial": _AGAIN,
}
"""Models of a team that are not exported, and why."""
