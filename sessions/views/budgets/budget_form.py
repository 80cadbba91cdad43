"""The budget form: limits in tokens and dollars."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms

from sessions.actions.budgets.budgets import MOST, NAME_CHARS, BudgetFields
from sessions.models import Budget

SCOPES = [("session", "a session"), ("task", "a task"), ("agent", "an agent")]
MODES = [
    ("soft", "soft: warn and go on"),
    ("approval", "approval: wait for a person's approval"),
    ("hard", "hard: refuse"),
]


class BudgetForm(forms.Form):
    """The fields of a budget form."""

    scope = forms.ChoiceField(label="Of", choices=SCOPES)
    name = forms.CharField(
        label="Which",
        required=False,
        max_length=NAME_CHARS,
        help_text="External id, task or agent name; empty for each one.",
    )
    period = forms.ChoiceField(label="Resets", required=False, choices=[
        ("", "never"), ("day", "each day (UTC)"), ("month", "each month (UTC)"),
    ])  # fmt: skip
    tokens = forms.IntegerField(
        label="Tokens", required=False, min_value=0, max_value=MOST,
        help_text="Prompt and output as billed, including cache reads.",
    )  # fmt: skip
    dollars = forms.DecimalField(
        label="Dollars", required=False, min_value=0, max_value=Decimal(10**9), decimal_places=6
    )
    mode = forms.ChoiceField(label="At the limit", choices=MODES)
    warn = forms.IntegerField(label="Warn at percent", min_value=1, max_value=100, initial=80)
    active = forms.BooleanField(label="Active", required=False, initial=True)

    def clean(self) -> dict[str, Any]:
        """Require at least one limit."""
        given = super().clean() or {}
        wrong = {"tokens", "dollars"} & set(self.errors)
        if not wrong and given.get("tokens") is None and given.get("dollars") is None:
            self.add_error("tokens", "Enter a limit in tokens, in dollars, or both.")
        return given

    def fields_wanted(self) -> BudgetFields:
        """The budget fields for the action."""
        given = dict(self.cleaned_data)
        dollars = given.pop("dollars")
        microusd = None if dollars is None else int(dollars * 1_000_000)
        return BudgetFields(**given, microusd=microusd)


def as_shown(budget: Budget) -> dict[str, Any]:
    """A budget as initial form data."""
    names = ("scope", "name", "period", "tokens", "mode", "warn", "active")
    microusd = budget.microusd
    dollars = None if microusd is None else Decimal(microusd) / 1_000_000
    return {name: getattr(budget, name) for name in names} | {"dollars": dollars}
