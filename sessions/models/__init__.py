"""Database models, one module per concept."""

from sessions.models.accounts.accounts import Attempts, LoginAddress
from sessions.models.accounts.audit import AuditEntry
from sessions.models.accounts.keys import Answer, Key
from sessions.models.accounts.preferences import Preferences
from sessions.models.accounts.teams import Invitation, Membership, Team
from sessions.models.accounts.visits import Visit
from sessions.models.budgets.budgets import Approval, Budget, Reservation, Use
from sessions.models.cache.break_totals import BreakTotals
from sessions.models.dashboard.day_totals import DayTotals
from sessions.models.erasure.erasures import ErasedBlob, ErasedSession, Erasure
from sessions.models.erasure.retention import Hold, Retention
from sessions.models.imports.imports import Import, ImportFile, SkippedRecord
from sessions.models.ingestion.arrivals import AcceptedRequests, RefusedRequest
from sessions.models.jobs.jobs import Job
from sessions.models.lab.simulations import Simulation, SimulationResult
from sessions.models.lab.tunings import Tuning, TuningTrial
from sessions.models.live.managed import Artefact, ManagedContext, Pin, SentRecitation
from sessions.models.masking.masking import IncomingMasking, MaskedCount, MaskingRule
from sessions.models.memory.boards import (
    Board,
    Delivery,
    Gathering,
    Note,
    Opening,
    Share,
    Subscription,
)
from sessions.models.notifications.notifications import (
    Notification,
    NotificationChannel,
    NotificationRule,
)
from sessions.models.operations.quotas import Quota, QuotaUse
from sessions.models.operations.seen import SeenProcess
from sessions.models.operations.stored import StoredBytes
from sessions.models.policies.policies import Policy, PolicyVersion, Rollout
from sessions.models.record.archives import Archive
from sessions.models.record.blobs import Blob
from sessions.models.record.messages import Block, Message, ModelCall
from sessions.models.record.objects import RemovedObject
from sessions.models.record.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.record.step_notes import StepNote
from sessions.models.reviews.assessments import Assessment, FactLedger
from sessions.models.reviews.reviews import Review, ReviewItem, ReviewRules
from sessions.models.search.saved_searches import SavedSearch
from sessions.models.search.session_names import SessionName
from sessions.models.tools.graphs import Retry, ToolGraph

__all__ = [
    "Attempts",
    "Note",
    "Answer",
    "Approval",
    "Archive",
    "AcceptedRequests",
    "Artefact",
    "Assessment",
    "AuditEntry",
    "Blob",
    "Block",
    "Board",
    "BreakTotals",
    "Budget",
    "DayTotals",
    "Delivery",
    "Edit",
    "ErasedBlob",
    "ErasedSession",
    "Erasure",
    "Entry",
    "FactLedger",
    "Gathering",
    "Hold",
    "Import",
    "ImportFile",
    "IncomingMasking",
    "Invitation",
    "Job",
    "Key",
    "LoginAddress",
    "Membership",
    "Message",
    "ModelCall",
    "Notification",
    "NotificationChannel",
    "NotificationRule",
    "Opening",
    "Pin",
    "Policy",
    "PolicyVersion",
    "Preferences",
    "RefusedRequest",
    "RemovedObject",
    "Quota",
    "QuotaUse",
    "Replacement",
    "Reservation",
    "Retention",
    "Retry",
    "Review",
    "ReviewItem",
    "ReviewRules",
    "Revision",
    "Rollout",
    "Run",
    "ManagedContext",
    "MaskedCount",
    "MaskingRule",
    "SavedSearch",
    "SentRecitation",
    "SeenProcess",
    "Session",
    "SessionName",
    "Share",
    "Simulation",
    "SimulationResult",
    "SkippedRecord",
    "StepNote",
    "StoredBytes",
    "Subscription",
    "Team",
    "ToolGraph",
    "Tuning",
    "TuningTrial",
    "Use",
    "Visit",
]
