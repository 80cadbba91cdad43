"""Settings: each can be set from the environment (docs/operating/settings.md lists the names).

Nothing needs to be set. DATABASE_URL chooses PostgreSQL, REDIS_URL real Celery workers.
"""

import os
from typing import Any

from contextlab import environment as env
from contextlab.accounts import account_settings
from contextlab.accounts.account_settings import *  # noqa: F403
from contextlab.accounts.sign_on_settings import sign_on
from contextlab.database_settings import database
from contextlab.object_settings import storages
from contextlab.operations import log_settings
from contextlab.operations.exposure import how_public
from contextlab.processes.job_settings import *  # noqa: F403
from contextlab.processes.job_settings import REDIS_URL
from contextlab.version import version

BASE_DIR = env.ROOT
DATA_DIR = env.data_dir()
DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
# tiktoken looks here before it uses the network.
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(DATA_DIR / "tiktoken"))

HOST = env.text("HOST", "127.0.0.1")
PORT = env.port()

# --- access ----------------------------------------------------------------------------------
VERSION = version()  # for the API's description
DEBUG = env.flag("DEBUG")
SECRET_KEY = env.text("SECRET_KEY") or env.kept_secret(DATA_DIR, "secret_key")
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *env.words("ALLOWED_HOSTS")]
# Full origins (https://lab.example.com), required behind a proxy that terminates TLS.
CSRF_TRUSTED_ORIGINS = env.words("ORIGINS")
_BEHIND_TLS_PROXY = env.flag("BEHIND_TLS_PROXY")
# Why others can reach this server; empty if they cannot. `serve --host` changes it.
PUBLIC = how_public(
    HOST, env.words("ALLOWED_HOSTS"), CSRF_TRUSTED_ORIGINS, behind_proxy=_BEHIND_TLS_PROXY
)
# Whether `contextlab proxy` answers below /proxy/ of this server's address.
AGENT_PROXY = env.flag("AGENT_PROXY")
if _BEHIND_TLS_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
# Whose X-Forwarded-* headers count (contextlab/door/forwarded.py).
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES") or env.LOOPBACK
# Cookies ignore ports: without our own names, any other Django on this machine's localhost would
# overwrite them.
SESSION_COOKIE_NAME = "contextlab_session"
CSRF_COOKIE_NAME = "contextlab_csrf"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 30 * 24 * 3600  # seconds
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 365 * 24 * 3600
X_FRAME_OPTIONS = "DENY"
# "/lab", whether the proxy in front removes it or not.
FORCE_SCRIPT_NAME = "/" + env.text("ROOT_PATH").strip("/") if env.text("ROOT_PATH") else None
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# --- limits -----------------------------------------------------------------------------------
BODY_LIMIT = int(env.number("BODY_MB", 10) * 1024 * 1024)  # bytes
UPLOAD_LIMIT = int(env.number("UPLOAD_MB", 64) * 1024 * 1024)  # bytes
# URL prefixes with the larger limit.
UPLOAD_PATHS = ("/imports/", "/api/v1/imports")
BODY_SECONDS = env.number("BODY_SECONDS", 60)  # for a whole request to arrive
# Requests of one team, or of one person in a browser: running at once, and waiting for that.
API_AT_ONCE = int(env.number("API_AT_ONCE", 16))
API_WAITING = int(env.number("API_WAITING", 256))
API_RATE = env.number("API_RATE", 500)  # requests per second
API_RATE_BYTES = env.number("API_RATE_MB", 64) * 1024 * 1024  # per second
CONNECTIONS = int(env.number("CONNECTIONS", 2000))
# Behind a proxy all connections come from one address.
CONNECTIONS_PER_ADDRESS = int(
    env.number("CONNECTIONS_PER_ADDRESS", CONNECTIONS if env.flag("BEHIND_TLS_PROXY") else 500)
)
SOCKETS_PER_USER = int(env.number("SOCKETS_PER_USER", 300))
# The server already counts bytes (contextlab/door).
DATA_UPLOAD_MAX_MEMORY_SIZE = UPLOAD_LIMIT
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "contextlab.door.uploads.NamelessFileUploadHandler",
]

# --- parts ------------------------------------------------------------------------------------
# Neither "daphne" nor "channels": they only replace runserver, and would load Twisted into
# every command and job process.
INSTALLED_APPS = [
    "contextlab.apps.ContextlabConfig",
    "sessions.apps.SessionsConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "csp",
    "django_vite",
    *account_settings.APPS,
]
# Django's own; API requests with a key skip each of them.
MIDDLEWARE = [
    "sessions.views.web.headers.Headers",
    "sessions.views.accounts.door.Door",
    "sessions.views.web.browsers.Static",
    "sessions.views.web.browsers.Compressed",
    "sessions.views.web.browsers.Sessions",
    "sessions.views.web.browsers.Common",
    "sessions.views.web.browsers.Csrf",
    "sessions.views.web.browsers.People",
    "sessions.views.web.browsers.Messages",
    "sessions.views.accounts.door.SignedIn",
    "sessions.views.accounts.preferences.Preferred",
    "sessions.views.accounts.visiting.Visiting",
    "sessions.views.masking.shown_masked.ShownMasked",
    "allauth.account.middleware.AccountMiddleware",
]
# --- sign-in ----------------------------------------------------------------------------------
SIGN_ON = sign_on()
if SIGN_ON:
    INSTALLED_APPS += account_settings.WITH_PROVIDER
    SOCIALACCOUNT_ADAPTER = "contextlab.accounts.single_sign_on.Adapter"
    SOCIALACCOUNT_PROVIDERS = SIGN_ON.providers
    SOCIALACCOUNT_LOGIN_ON_GET = True  # form-action would refuse to lead to the provider
# Keys of a person with access by single sign-on lapse so long after the last sign-in; 0: never.
SIGN_ON_KEY_DAYS = int(env.number("OIDC_KEY_DAYS", 30))

ROOT_URLCONF = "contextlab.urls"
ASGI_APPLICATION = "contextlab.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # In a wheel they are in contextlab/templates, which APP_DIRS finds.
        "DIRS": [BASE_DIR / "templates"] if (BASE_DIR / "manage.py").exists() else [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "sessions.views.web.pages.navigation",
            ]
        },
    }
]
# Messages name people and budgets: keep them on the server.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
USE_TZ = True
TIME_ZONE = env.text("TIME_ZONE", "UTC")
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- static files ----------------------------------------------------------------------------
STATIC_URL = f"{FORCE_SCRIPT_NAME or ''}/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_AUTOREFRESH = DEBUG
# Vite puts a hash of eight letters into names below assets/, so these files never change.
WHITENOISE_IMMUTABLE_FILE_TEST = r"/contextlab/assets/.+[-.][0-9A-Za-z_-]{8}\.\w+$"
BUILT_PAGES = BASE_DIR / "contextlab" / "static" / "contextlab"
DJANGO_VITE = {
    "default": {
        "manifest_path": BUILT_PAGES / "manifest.json",
        "static_url_prefix": "contextlab",
    }
}

# --- the database -----------------------------------------------------------------------------
DATABASES = {"default": database(DATA_DIR)}

# --- object storage ---------------------------------------------------------------------------
BLOBS = env.text("BLOBS")  # s3://bucket/prefix; without it content is in the database
BLOBS_CACHE_BYTES = int(env.number("BLOBS_CACHE_MB", 1024) * 1024 * 1024)  # copies on this disk
STORAGES = storages(BLOBS)

# --- live pages -------------------------------------------------------------------------------
ERASE_GRACE_SECONDS = 30.0  # content that nothing uses may wait so long for its use
ARRIVAL_SECONDS = 5.0  # between writes of the counts of what agents sent
LIVE_POLL_SECONDS = env.number("LIVE_POLL_SECONDS", 2)
HINTS_WAITING = 1000  # per process; more are lost, and made up for within LIVE_POLL_SECONDS
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": (
        {
            "BACKEND": "contextlab.live.channel_layer.PatientLayer",
            # Pages wait five seconds for messages: the client must not give up earlier.
            "CONFIG": {
                "hosts": [
                    {"address": REDIS_URL, "socket_timeout": 15, "socket_connect_timeout": 2}
                ],
                "capacity": HINTS_WAITING,
            },
        }
        if REDIS_URL
        else {
            "BACKEND": "channels.layers.InMemoryChannelLayer",
            "CONFIG": {"capacity": HINTS_WAITING},
        }
    )
}

# --- prices -----------------------------------------------------------------------------------
PRICES_FILE = env.text("PRICES")  # TOML or JSON; overrides list prices

# --- summaries --------------------------------------------------------------------------------
# "anthropic" sends spans of sessions, secrets masked, to Anthropic; it needs ANTHROPIC_API_KEY.
SUMMARIZER = env.text("SUMMARIZER", "extractive")
if SUMMARIZER not in ("extractive", "anthropic"):
    raise ValueError(f"CONTEXTLAB_SUMMARIZER is extractive or anthropic, not {SUMMARIZER!r}")
if SUMMARIZER == "anthropic":
    env.needs("CONTEXTLAB_SUMMARIZER=anthropic", "anthropic", "anthropic")
SUMMARIZER_MODEL = env.text("SUMMARIZER_MODEL", "claude-haiku-5-5")
SUMMARIZER_SECONDS = env.number("SUMMARIZER_SECONDS", 90)  # per answer

# --- new topics -------------------------------------------------------------------------------
# "anthropic" asks the model above whether a message begins one, with the same key; secrets masked.
TOPIC_JUDGE = env.text("TOPIC_JUDGE", "embedded")
if TOPIC_JUDGE not in ("embedded", "anthropic"):
    raise ValueError(f"CONTEXTLAB_TOPIC_JUDGE is embedded or anthropic, not {TOPIC_JUDGE!r}")
if TOPIC_JUDGE == "anthropic":
    env.needs("CONTEXTLAB_TOPIC_JUDGE=anthropic", "anthropic", "anthropic")

# --- notifications ----------------------------------------------------------------------------
# Without a mail server no email is sent, and the page says so.
EMAIL_HOST = env.text("SMTP_HOST")
EMAIL_PORT = int(env.number("SMTP_PORT", 587))
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env.text("SMTP_USER"), env.text("SMTP_PASSWORD")
_SMTP_TLS = env.text("SMTP_TLS", "starttls")
if _SMTP_TLS not in ("starttls", "tls", "none"):
    raise ValueError(f"CONTEXTLAB_SMTP_TLS is starttls, tls or none, not {_SMTP_TLS!r}")
EMAIL_USE_TLS, EMAIL_USE_SSL = _SMTP_TLS == "starttls", _SMTP_TLS == "tls"
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "contextlab@localhost")
# Networks (10.0.0.0/8) that webhooks may reach although they are not public.
WEBHOOK_NETWORKS = env.networks("WEBHOOK_NETWORKS")

# --- live sessions -----------------------------------------------------------------------------
# What manages a session that names no policy: a preset, or a policy of every team.
DEFAULT_POLICY = env.text("DEFAULT_POLICY", "balanced")

# --- logs: ids, sizes and classes of errors, never content -------------------------------------
ACCESS_LOG = env.flag("ACCESS_LOG")
METRICS_TOKEN = env.text("METRICS_TOKEN")
# A worker's address for `/metrics`, host:port; a server has it on its own port.
WORKER_METRICS = env.text("WORKER_METRICS")
TRACES = env.flag("TRACES")
if TRACES:
    env.needs("CONTEXTLAB_TRACES", "traces", "opentelemetry.sdk", "opentelemetry.exporter")
LOGGING = log_settings.logging()
