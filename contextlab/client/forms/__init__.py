"""The APIs whose calls are managed, as the client sends and reads them."""

from contextlab.client.forms import chat, messages_api, responses
from contextlab.client.forms.form import ApiForm

FORMS: dict[tuple[str, str], ApiForm] = {
    ("anthropic", "v1/messages"): messages_api.FORM,
    ("openai", "chat/completions"): chat.FORM,
    ("openai", "responses"): responses.FORM,
}
"""By the SDK and the path of a request."""

__all__ = ["FORMS", "ApiForm"]
