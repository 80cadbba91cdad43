"""What the settings name exists."""

from django.utils.module_loading import import_string

from contextlab import settings


def test_every_kind_of_job_names_a_function():
    assert settings.JOB_KINDS
    for path in settings.JOB_KINDS.values():
        assert callable(import_string(path))


def test_nothing_is_open_by_default():
    assert not settings.DEBUG
    assert "*" not in settings.ALLOWED_HOSTS
    assert settings.HOST == "127.0.0.1"
