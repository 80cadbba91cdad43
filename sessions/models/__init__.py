"""Rows, one file per concept."""

from sessions.models.accounts import LoginFailure
from sessions.models.assessments import Assessment, FactLedger
from sessions.models.audit import AuditEntry
from sessions.models.blobs import Blob
from sessions.models.boards import (
    Anchor,
    Board,
    Delivery,
    Gathering,
    Opening,
    Share,
    Subscription,
)
from sessions.models.budgets import Approval, Budget, Reservation, Use
from sessions.models.imports import Import, ImportFile, SkippedRecord
from sessions.models.jobs import Job
from sessions.models.keys import Answer, Key
from sessions.models.policies import Policy, PolicyVersion, Rollout
from sessions.models.reviews import Review, ReviewItem, ReviewRules
from sessions.models.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.served import Artefact, Pin, ServedContext
from sessions.models.sessions import Block, Message, ModelCall, Session
from sessions.models.simulations import Simulation, SimulationResult
from sessions.models.teams import Invitation, Membership, Team
from sessions.models.tools import Retry, ToolGraph
from sessions.models.tunings import Tuning, TuningTrial

__all__ = [
    "Anchor",
    "Answer",
    "Approval",
    "Artefact",
    "Assessment",
    "AuditEntry",
    "Blob",
    "Block",
    "Board",
    "Budget",
    "Delivery",
    "Edit",
    "Entry",
    "FactLedger",
    "Gathering",
    "Import",
    "ImportFile",
    "Invitation",
    "Job",
    "Key",
    "LoginFailure",
    "Membership",
    "Message",
    "ModelCall",
    "Opening",
    "Pin",
    "Policy",
    "PolicyVersion",
    "Replacement",
    "Reservation",
    "Retry",
    "Review",
    "ReviewItem",
    "ReviewRules",
    "Revision",
    "Rollout",
    "Run",
    "ServedContext",
    "Session",
    "Share",
    "Simulation",
    "SimulationResult",
    "SkippedRecord",
    "Subscription",
    "Team",
    "ToolGraph",
    "Tuning",
    "TuningTrial",
    "Use",
]
