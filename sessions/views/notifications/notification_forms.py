"""Forms of channels and rules."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms

from sessions.actions.notifications.channels import MOST_MINUTES, MOST_THRESHOLD, NAME_CHARS
from sessions.actions.notifications.events import NotifiedEvent
from sessions.figures import money
from sessions.models import NotificationChannel

_DOLLAR = 1_000_000


class ChannelForm(forms.Form):
    """A new channel."""

    kind = forms.ChoiceField(label="Kind", choices=NotificationChannel.Kind.choices)
    name = forms.CharField(
        label="Name",
        max_length=NAME_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "ops"}),
    )
    address = forms.CharField(
        label="URL or email addresses",
        max_length=500,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "https://…"}),
    )


class RuleForm(forms.Form):
    """The rule of one event; `threshold` only if the event has one."""

    channel_id = forms.ChoiceField(label="Channel")
    at_least = forms.DecimalField(required=False, min_value=0, max_value=Decimal(MOST_THRESHOLD))
    minutes = forms.IntegerField(
        label="At most once in (minutes)", min_value=0, max_value=MOST_MINUTES, initial=60
    )

    def __init__(
        self,
        data: Any = None,
        *,
        event: NotifiedEvent,
        channels: Sequence[NotificationChannel],
    ) -> None:
        super().__init__(data, auto_id=f"{event.name}_%s")
        self._event = event
        self._channels = {str(one.pk): one for one in channels}
        choices = [(key, one.name) for key, one in self._channels.items()]
        self.fields["channel_id"].choices = choices  # type: ignore[attr-defined]
        if event.every:
            del self.fields["minutes"]
        if not event.unit:
            del self.fields["at_least"]
            return
        amount = self.fields["at_least"]
        amount.label = f"At least ({_UNITS[event.unit]})"
        dollars = event.unit == "microusd"
        amount.initial = f"{event.default / _DOLLAR:.2f}" if dollars else event.default  # type: ignore[operator]

    @property
    def channel(self) -> NotificationChannel:
        """The chosen channel."""
        return self._channels[self.cleaned_data["channel_id"]]

    @property
    def quiet_minutes(self) -> int:
        """For how long the same cause is quiet."""
        return int(self.cleaned_data.get("minutes", 0))

    @property
    def threshold(self) -> int | None:
        """The threshold in the event's unit; None for its default."""
        typed = self.cleaned_data.get("at_least")
        if typed is None:
            return None
        return int(typed * _DOLLAR) if self._event.unit == "microusd" else int(typed)


_UNITS = {"microusd": "dollars", "percent": "percent of the limit", "facts": "facts"}


def threshold_text(event: NotifiedEvent, threshold: int | None) -> str:
    """A threshold in words; empty without one."""
    if threshold is None or not event.unit:
        return ""
    if event.unit == "microusd":
        return f"at least {money(threshold)}"
    return f"at least {threshold}{' %' if event.unit == 'percent' else ' facts'}"
