"""The command: lists commands, and exits with the documented codes."""

import json

import pytest
from django.core.management.base import BaseCommand, CommandError

from contextlab import cli
from contextlab.version import version


def ended(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(list(arguments))
    out, err = capsys.readouterr()
    return end.value.code, out, err


def test_help_lists_what_there_is_and_the_exit_codes(capsys):
    code, out, _ = ended(capsys, "--help")
    assert code == 0
    assert "serve" in out
    assert "Exit codes: 0" in out
    assert ended(capsys)[0] == 2


def test_an_unknown_command_is_one_sentence(capsys):
    code, out, err = ended(capsys, "sevre")
    assert (code, out) == (2, "")
    assert err.startswith("There is no command 'sevre'. Use one of: ")
    assert err.count("\n") == 1


def test_commands_that_are_not_there_are_not_offered(capsys, monkeypatch):
    missing = ("sessions.management.commands.unwritten", "nothing yet")
    monkeypatch.setitem(cli.COMMANDS, "unwritten", missing)
    assert "unwritten" not in cli.available()
    assert ended(capsys, "unwritten")[0] == 2


def test_version(capsys):
    assert ended(capsys, "--version")[:2] == (0, f"{version()}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("simulate", "x", "--policy", "y", "--objective", "fast"), "Argument --objective: "),
        (("simulate", "x"), "The following arguments are required: --policy."),
        (("token", "make"), "Argument create|list|revoke: invalid choice: 'make'"),
        (("import", "--nope", "x"), "Unrecognized arguments: --nope."),
        (("serve", "--port", "99999999"), "Argument --port: invalid port value: '99999999'."),
    ],
)
def test_a_bad_command_line_is_one_sentence(capsys, arguments, sentence):
    code, out, err = ended(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)
    assert err.endswith(f" `contextlab {arguments[0]} --help` for its options.\n")
    assert err.count("\n") == 1


def test_what_the_system_refuses_is_one_sentence(capsys, monkeypatch):
    def refusing(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/secret/log.jsonl")

    monkeypatch.setattr("sessions.management.commands.calibrate.Command.handle", refusing)
    said = (1, "", "/secret/log.jsonl: Permission denied.\n")
    assert ended(capsys, "calibrate", "/secret/log.jsonl") == said
    monkeypatch.setattr("django.setup", refusing)
    assert ended(capsys, "calibrate", "/secret/log.jsonl") == said


def test_what_commands_print_does_not_steer_the_terminal(capsys, monkeypatch):
    text = "a\x1b]52;c;eA==\x07\x9b31m\x7f\r\tb\u202ec\n"
    shown = "a\\u001b]52;c;eA==\\u0007\\u009b31m\\u007f\\u000d\tb\\u202ec\n"

    class Printing(BaseCommand):
        requires_system_checks = []

        def handle(self, *_: object, **__: object) -> None:
            self.stdout.write(text)
            self.stdout.write(json.dumps(text, ensure_ascii=False))
            raise CommandError(text)

    monkeypatch.setattr(cli, "loaded", lambda _: Printing())
    code, out, err = ended(capsys, "doctor")
    said, as_json, _ = out.split("\n")
    assert (code, said + "\n", err) == (1, shown, shown + "\n")
    assert json.loads(as_json) == text
