"""The APIs whose calls are recorded and managed, by the provider and path of a request."""

from contextlab.client.forms import FORMS as OF_SDKS
from contextlab.client.forms import ApiForm, responses
from contextlab.client.forms.form import Json
from contextlab.proxy import gemini
from contextlab.proxy.items import message_of

_FORMS: dict[tuple[str, str], ApiForm] = {
    ("anthropic", "v1/messages"): OF_SDKS["anthropic", "v1/messages"],
    ("openai", "v1/chat/completions"): OF_SDKS["openai", "chat/completions"],
    ("openai", "v1/responses"): responses.form(message_of),
}

__all__ = ["ApiForm", "form_of"]


def form_of(provider: str, path: str, query: str) -> tuple[ApiForm, Json] | None:
    """The API of a request, and the fields that its address has instead of its body; None if it is
    none that we know."""
    if provider == "gemini":
        fields = gemini.of_the_path(path, query)
        return None if fields is None else (gemini.FORM, fields)
    form = _FORMS.get((provider, path))
    return None if form is None else (form, {})
