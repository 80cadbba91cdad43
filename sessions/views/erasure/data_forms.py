"""Forms of Settings, Data: what to erase, for how long to keep, and what to hold."""

from __future__ import annotations

from django import forms

from sessions.models import Erasure, Hold

VALUE_CHARS, REASON_CHARS = 1000, 300

KINDS = [
    (Erasure.Kind.SESSION, "a session, by its id"),
    (Erasure.Kind.TASK, "a task: its sessions and board"),
    (Erasure.Kind.METADATA, "a subject: sessions with metadata KEY=VALUE"),
    (Erasure.Kind.TEXT, "a subject: sessions that contain a text"),
    (Erasure.Kind.MEMBER, "a member's data, by name"),
    (Erasure.Kind.TEAM, "the whole team, by its slug"),
]

REASON = "Kept in the receipt and the audit log. Name no content."


class EraseForm(forms.Form):
    """What to erase. `sure` repeats the value once the page has counted what would go."""

    kind = forms.ChoiceField(label="Erase", choices=KINDS)
    value = forms.CharField(label="Id, name or text to erase", max_length=VALUE_CHARS)
    reason = forms.CharField(label="Reason", max_length=REASON_CHARS, help_text=REASON)


MOST_DAYS = 36_500


class RetentionForm(forms.Form):
    """For how many days content and sessions are kept; nothing for ever."""

    content_days = forms.IntegerField(
        label="Keep content for, in days",
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="Texts, summaries, boards. Figures stay. Empty: forever.",
    )
    session_days = forms.IntegerField(
        label="Keep sessions for, in days",
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="Everything about a session. Empty: forever.",
    )


class ArchivingForm(forms.Form):
    """After how many days from their last step sessions are archived; nothing for never."""

    days = forms.IntegerField(
        label="Archive sessions after, in days",
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="From the last step, or from when it was last unpacked. Empty: never.",
    )


class HoldForm(forms.Form):
    """What to hold, and why."""

    kind = forms.ChoiceField(label="Hold", choices=Hold.Kind.choices)
    value = forms.CharField(
        label="Session id or task name to hold",
        max_length=300,
        required=False,
        help_text="Leave empty to hold everything of the team.",
    )
    reason = forms.CharField(label="Reason", max_length=REASON_CHARS)
