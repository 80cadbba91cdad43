"""Rows, one file per concept."""

from sessions.models.blobs import Blob
from sessions.models.imports import Import, ImportFile, SkippedRecord
from sessions.models.jobs import Job
from sessions.models.policies import Policy, PolicyVersion
from sessions.models.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.sessions import Block, Message, ModelCall, Session
from sessions.models.teams import Membership, Team

__all__ = [
    "Blob",
    "Block",
    "Edit",
    "Entry",
    "Import",
    "ImportFile",
    "Job",
    "Membership",
    "Message",
    "ModelCall",
    "Policy",
    "PolicyVersion",
    "Replacement",
    "Revision",
    "Run",
    "Session",
    "SkippedRecord",
    "Team",
]
