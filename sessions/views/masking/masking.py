"""Settings, Masking: rules, a sample to try them on, dry runs, and masking what comes in and what
is shown."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from compaction.redaction.team_rules import MOST_RULES, BadRule, TeamRule, check, masked_by
from sessions.access import actor_of, require, team_to, teams_of
from sessions.actions.masking import dry_runs, rules
from sessions.api.masking.masking import REPORTED
from sessions.models import MaskingRule, Session, Team
from sessions.models.masking import counted
from sessions.views.web.pages import Page

SAMPLE_CHARS = 10_000
SESSIONS = 10


class MaskingRuleForm(forms.Form):
    """A rule, and a sample to try it on. `changes` is the rule that it replaces."""

    name = forms.CharField(
        max_length=30, help_text="Capitals, digits and underscores, such as CUSTOMER."
    )
    kind = forms.ChoiceField(label="Finds", choices=MaskingRule.Kind.choices)
    text = forms.CharField(
        label="Words or pattern",
        max_length=50_000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="Words: one a line, whole words, in upper or lower case. A pattern: RE2, one "
        "line of the text at a time.",
    )
    replacement = forms.CharField(
        label="Becomes", max_length=60, required=False, help_text="Empty: the name in brackets."
    )
    sample = forms.CharField(
        label="Sample text",
        required=False,
        max_length=SAMPLE_CHARS,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="Text of your own to test the rule on. It is not stored.",
    )
    changes = forms.UUIDField(required=False, widget=forms.HiddenInput)

    @property
    def rule(self) -> TeamRule:
        """The rule; the form must be valid."""
        given = self.cleaned_data
        name, text = given["name"].strip(), given["text"].replace("\r\n", "\n")
        return TeamRule(name, given["kind"], text, given["replacement"] or f"[{name}]")


@never_cache
@require_GET
def masking(request: HttpRequest) -> HttpResponse:
    """Show the rules in force, and what they masked; with `change`, a rule's form."""
    team = team_to(request, "erase")
    form = None
    if request.GET.get("change"):
        rows = MaskingRule.objects.filter(team=team, name=request.GET["change"], removed=None)
        if (row := rows.first()) is None:
            raise Http404("no such rule")
        initial = {name: getattr(row, name) for name in ("name", "kind", "text", "replacement")}
        form = MaskingRuleForm(initial={**initial, "changes": row.pk})
    return _page(request, team, form)


def _page(
    request: HttpRequest,
    team: Team,
    form: MaskingRuleForm | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    since = timezone.now() - REPORTED
    job = dry_runs.newest(team)
    form = form or MaskingRuleForm()
    changes = form["changes"].value() or None
    context = {
        "section": "settings",
        "page": "masking",
        "team": team,
        "form": form,
        "changed": MaskingRule.objects.filter(team=team, pk=changes).first() if changes else None,
        "rules": MaskingRule.objects.filter(team=team, removed=None).order_by("name"),
        "most_rules": MOST_RULES,
        "incoming": rules.masks_incoming(team),
        "job": job,
        "found": _found(team, job.result or {}) if job is not None else [],
        "masked": counted.of_team(team, since),
        "masked_sessions": counted.newest(team, since, SESSIONS),
        **more,
    }
    return render(request, "masking/masking.html", context, status=status)


def _found(team: Team, result: dict[str, Any]) -> list[tuple[str, dict[str, Any], list[Session]]]:
    """The rules of a dry run, with their counts and the sessions that it named."""
    made = []
    for name, of in result.get("rules", {}).items():
        named = Session.objects.for_team(team).in_bulk([UUID(one) for one in of["named"][:5]])
        made.append((name, of, list(named.values())))
    return made


def _back(team: Team) -> HttpResponse:
    return redirect(f"{reverse('masking')}?team={team.slug}")


@never_cache
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Test a rule on the sample, or save it."""
    team = team_to(request, "erase")
    form = MaskingRuleForm(request.POST)
    if not form.is_valid():
        return _page(request, team, form, 422)
    rule, counts = form.rule, dict[str, int]()
    try:
        if "test" in request.POST:
            check(rule)
            tested = masked_by((rule,), form.cleaned_data["sample"], counts)
            return _page(request, team, form, tested=tested, matches=sum(counts.values()))
        if form.cleaned_data["changes"]:
            rules.change(_named(request, form.cleaned_data["changes"]), rule, actor_of(request))
        else:
            rules.add(team, rule, actor_of(request))
    except BadRule as error:
        form.add_error(error.field or None, str(error))
        return _page(request, team, form, 422)
    messages.success(request, f"{rule.name} is in force.")
    return _back(team)


def _named(request: HttpRequest, masking_rule_id: UUID) -> MaskingRule:
    rows = MaskingRule.objects.filter(team__in=teams_of(request), pk=masking_rule_id)
    row = rows.select_related("team").first()
    if row is None:
        raise Http404("no such rule")
    require(request, row.team, "erase")
    return row


@require_POST
def remove(request: HttpRequest, masking_rule_id: UUID) -> HttpResponse:
    """Remove a rule."""
    row = _named(request, masking_rule_id)
    try:
        rules.remove(row, actor_of(request))
    except BadRule as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, f"{row.name} was removed. What is stored masked stays so.")
    return _back(row.team)


SWITCHES = {
    "incoming": (rules.mask_incoming, "stored masked", "stored as sent"),
    "shown": (rules.show_masked, "shown masked", "shown as stored"),
}
"""What is switched on the page: the action, and what content then is, on and off."""


@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Mask what comes in, or what is shown; or no longer."""
    team = team_to(request, "erase")
    if (what := request.POST.get("what", "")) not in SWITCHES:
        raise Http404("no such switch")
    act, on, off = SWITCHES[what]
    wanted = request.POST.get("on") == "yes"
    act(team, wanted, actor_of(request))
    messages.success(request, f"Content is {on if wanted else off} from now on.")
    return _back(team)


@require_POST
def dry_run(request: HttpRequest) -> HttpResponse:
    """Begin a dry run over stored sessions."""
    team = team_to(request, "erase")
    dry_runs.begin(team, actor_of(request))
    messages.success(request, "The dry run has begun. Its counts will be below.")
    return _back(team)


PAGES = (
    Page(
        route="settings/masking/",
        query=("change",),
        view=masking,
        name="masking",
        needs={"GET": "erase"},
    ),
    Page(
        route="settings/masking/rules/",
        view=save,
        name="masking_save",
        needs={"POST": "erase"},
    ),
    Page(
        route="settings/masking/rules/<uuid:masking_rule_id>/remove/",
        view=remove,
        name="masking_remove",
        needs={"POST": "erase"},
    ),
    Page(
        route="settings/masking/switch/",
        view=switch,
        name="masking_switch",
        needs={"POST": "erase"},
    ),
    Page(
        route="settings/masking/dry-run/",
        view=dry_run,
        name="masking_dry_run",
        needs={"POST": "erase"},
    ),
)
