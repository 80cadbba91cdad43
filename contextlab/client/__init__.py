"""A small client for agents: send messages, take the managed context, report usage.

    from contextlab.client import ContextLab

    session = ContextLab().session("my-run", agent="fixer", model="claude-sonnet-5")
    session.append({"role": "user", "content": "Fix the failing test."})
    context = session.context()
    reply = anthropic.Anthropic().messages.create(max_tokens=4096, **context.request)
    session.answer(reply, context)

Imports neither Django nor the rest of this package.
"""

from contextlab.client.answers import Appended, Context
from contextlab.client.client_call import NotManaged
from contextlab.client.connection import Misaddressed, OverBudget, Paused, Refused, Unreachable
from contextlab.client.later import AsyncContextLab, AsyncSession
from contextlab.client.sessions import ContextLab, Session
from contextlab.client.wrapped import wrap

__all__ = [
    "Appended",
    "AsyncContextLab",
    "AsyncSession",
    "Context",
    "ContextLab",
    "Misaddressed",
    "NotManaged",
    "OverBudget",
    "Paused",
    "Refused",
    "Session",
    "Unreachable",
    "wrap",
]
