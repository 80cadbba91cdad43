"""The `contextlab` command."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from contextlab.operations.permissions import keep_private
from contextlab.terminal import VisibleOutput, visible
from contextlab.version import version

if TYPE_CHECKING:  # Django takes a while to import, and `--help` does not need it
    from django.core.management import BaseCommand

# Command -> module of the management command, and short description.
COMMANDS = {
    "serve": ("contextlab.management.commands.serve", "run the dashboard and a worker"),
    "wrap": ("contextlab.management.commands.wrap", "run an agent with its calls recorded"),
    "proxy": ("contextlab.management.commands.proxy", "record or manage agents without code"),
    "mcp": ("contextlab.management.commands.mcp", "offer tools to agents over MCP"),
    "push": ("contextlab.management.commands.push", "send logs to a server"),
    "import": ("sessions.management.commands.import_logs", "import agent logs"),
    "demo": ("sessions.management.commands.demo", "add demo sessions"),
    "simulate": ("sessions.management.commands.simulate", "simulate a policy on sessions"),
    "probe": ("sessions.management.commands.probe", "ask a model under both contexts"),
    "calibrate": ("sessions.management.commands.calibrate", "compare the cache rules with logs"),
    "compare": ("sessions.management.commands.compare", "compare two sessions step by step"),
    "why": ("sessions.management.commands.why", "say why an agent forgot a text"),
    "show": ("sessions.management.commands.show", "print a session's context at a step"),
    "tail": ("sessions.management.commands.tail", "follow model calls as they happen"),
    "export": ("sessions.management.commands.export", "write a session to a file"),
    "erase": ("sessions.management.commands.erase", "erase data for good, with a receipt"),
    "retention": ("sessions.management.commands.retention", "for how long a team keeps data"),
    "archive": ("sessions.management.commands.archive", "pack cold sessions"),
    "hold": ("sessions.management.commands.hold", "keep data from being erased"),
    "masking": ("sessions.management.commands.masking", "rules by which a team masks content"),
    "login": ("sessions.management.commands.login", "print an address that signs you in once"),
    "reset": ("sessions.management.commands.reset", "print a link to set a new password"),
    "token": ("sessions.management.commands.token", "create and revoke API keys"),
    "audit": ("sessions.management.commands.audit", "verify and export the audit log"),
    "invite": ("sessions.management.commands.invite", "invite someone to a team"),
    "doctor": ("contextlab.management.commands.doctor", "check the installation"),
    "status": ("sessions.management.commands.status", "show queues, workers, storage, failures"),
    "quota": ("sessions.management.commands.quota", "show or set what a team may use"),
    "backup": ("contextlab.management.commands.backup", "back up the data while in use"),
    "restore": ("contextlab.management.commands.restore", "restore a backup"),
    "new": ("contextlab.management.commands.new", "create a strategy, importer or page"),
    "blobs": ("sessions.management.commands.blobs", "show where content is, and move it"),
    "verify": ("sessions.management.commands.verify", "check all stored data, or logs"),
    "worker": ("contextlab.management.commands.worker", "run jobs, with Redis"),
    "migrate": ("contextlab.management.commands.migrate", "migrate the database"),
}
OF_DJANGO = {
    "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color",
    "--force-color", "--skip-checks",
}  # fmt: skip
"""Options that all Django commands have: they work, but help omits them."""

READ_TABLES = {
    "import", "demo", "worker", "show", "why", "compare", "tail", "export", "token", "login",
    "invite", "reset", "simulate", "probe", "verify", "audit", "erase",
    "retention", "archive", "hold", "masking", "status", "quota", "blobs",
}  # fmt: skip
"""Commands that need up-to-date tables: `serve` migrates itself, the others need none."""

EXIT_CODES = """Exit codes: 0 success; 1 failure, explained on the last line; 2 invalid command
line, or a name that does not exist; 130 stopped with Ctrl+C; 141 output closed early."""


def available() -> dict[str, str]:
    """Commands of this release with their descriptions."""
    return {name: text for name, (module, text) in COMMANDS.items() if _exists(module)}


def _exists(module: str) -> bool:
    # Look for the file: importing it would load half of Django just to list names.
    parent, _, name = module.rpartition(".")
    spec = find_spec(parent)
    places = (spec.submodule_search_locations or []) if spec else []
    return any(Path(place, f"{name}.py").exists() for place in places)


def usage() -> str:
    """The output of `contextlab --help`."""
    lines = [f"  {name:<10} {text}" for name, text in available().items()]
    return "\n".join(
        ["usage: contextlab COMMAND [OPTIONS]", "", *lines, ""]
        + ["`contextlab COMMAND --help` lists a command's options.", EXIT_CODES]
    )


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    keep_private()
    if not given or given[0] in ("-h", "--help", "help"):
        print(usage(), flush=True)
        sys.exit(0 if given else 2)
    if given[0] == "--version":
        print(version())
        sys.exit(0)
    name = given[0]
    if name not in available():
        sys.exit(_complain(f"There is no command {name!r}. Use one of: {', '.join(available())}."))
    try:
        sys.exit(run(name, given[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as in `contextlab show … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def loaded(name: str) -> BaseCommand:
    """A command of this release; Django must be set up."""
    from django.core.management import load_command_class

    module = COMMANDS[name][0]
    command = load_command_class(module.split(".management.")[0], module.rpartition(".")[2])
    command.suppressed_base_arguments = OF_DJANGO
    # System checks are for developers, and load every page and route.
    command.requires_system_checks = []
    return command


def run(name: str, arguments: list[str]) -> int:
    """Run a command and return its exit code.

    User errors are one sentence on stderr, without an exception name.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    import django
    from django.core.management import CommandError
    from django.db import DatabaseError

    try:
        django.setup()
    except ValueError as problem:  # an invalid setting
        return _complain(f"{str(problem).removesuffix('.')}.")
    except OSError as problem:  # the data directory, created by the settings
        return _failed(problem)
    from sessions.models.record.blobs import DamagedBlob
    from sessions.models.record.values import MissingBlob

    command = loaded(name)
    try:
        options = vars(command.create_parser("contextlab", name).parse_args(arguments))
    except CommandError as problem:
        said = str(problem).removeprefix("Error: ")
        more = f"Run `contextlab {name} --help` for its options."
        return _complain(f"{said[:1].upper()}{said[1:]}. {more}")
    try:
        if name in READ_TABLES:
            from contextlab.schema import bring_up_to_date

            bring_up_to_date()
        given = options.pop("args", ())
        command.execute(*given, **options, stdout=VisibleOutput(sys.stdout))
    except CommandError as problem:
        print(visible(str(problem)), file=sys.stderr)
        return int(problem.returncode)
    except DatabaseError as problem:
        return (
            _complain(f"The database failed: {problem}. Run `contextlab doctor` for details.") - 1
        )
    except (MissingBlob, DamagedBlob):
        return _complain("Some stored content is missing or damaged. Restore it from a backup.") - 1
    except BrokenPipeError:
        raise
    except OSError as problem:
        return _failed(problem)
    return 0


def _failed(problem: OSError) -> int:
    where = "" if problem.filename is None else f"{problem.filename}: "
    return _complain(f"{where}{problem.strerror or type(problem).__name__}.") - 1


def _complain(sentence: str) -> int:
    print(visible(sentence), file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
