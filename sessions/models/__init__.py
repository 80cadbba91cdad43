"""Rows, one file per concept."""

from sessions.models.accounts import LoginFailure
from sessions.models.assessments import Assessment, FactLedger
from sessions.models.audit import AuditEntry
from sessions.models.blobs import Blob
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

__all__ = [
    "Answer",
    "Artefact",
    "Assessment",
    "AuditEntry",
    "Blob",
    "Block",
    "Edit",
    "Entry",
    "FactLedger",
    "Import",
    "ImportFile",
    "Invitation",
    "Job",
    "Key",
    "LoginFailure",
    "Membership",
    "Message",
    "ModelCall",
    "Pin",
    "Policy",
    "PolicyVersion",
    "Replacement",
    "Review",
    "ReviewItem",
    "ReviewRules",
    "Revision",
    "Rollout",
    "Run",
    "ServedContext",
    "Session",
    "Simulation",
    "SimulationResult",
    "SkippedRecord",
    "Team",
]
