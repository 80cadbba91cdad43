"""Rows, one file per concept."""

from sessions.models.blobs import Blob
from sessions.models.imports import Import, ImportFile, SkippedRecord
from sessions.models.jobs import Job
from sessions.models.keys import Answer, Key
from sessions.models.policies import Policy, PolicyVersion
from sessions.models.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.served import Artefact, Pin, ServedContext
from sessions.models.sessions import Block, Message, ModelCall, Session
from sessions.models.teams import Membership, Team

__all__ = [
    "Answer",
    "Artefact",
    "Blob",
    "Block",
    "Edit",
    "Entry",
    "Import",
    "ImportFile",
    "Job",
    "Key",
    "Membership",
    "Message",
    "ModelCall",
    "Pin",
    "Policy",
    "PolicyVersion",
    "Replacement",
    "Revision",
    "Run",
    "ServedContext",
    "Session",
    "SkippedRecord",
    "Team",
]
