"""The `contextlab` command."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from contextlab import __version__

# Command -> the module of the management command, and what it does in a few words.
COMMANDS = {
    "serve": ("contextlab.management.commands.serve", "the dashboard, and a worker with it"),
    "import": ("sessions.management.commands.import_logs", "reads logs of agents"),
    "demo": ("sessions.management.commands.demo", "adds sessions to look at"),
    "simulate": ("sessions.management.commands.simulate", "tries a policy on a session"),
    "calibrate": ("sessions.management.commands.calibrate", "checks the cache rules on logs"),
    "show": ("sessions.management.commands.show", "prints a session's context at a step"),
    "tail": ("sessions.management.commands.tail", "follows agents call by call"),
    "export": ("sessions.management.commands.export", "writes a session to a file"),
    "token": ("sessions.management.commands.token", "makes and revokes keys of the API"),
    "invite": ("sessions.management.commands.invite", "asks somebody to join a team"),
    "doctor": ("contextlab.management.commands.doctor", "says what works and what does not"),
    "backup": ("sessions.management.commands.backup", "copies the data while it is in use"),
    "restore": ("sessions.management.commands.restore", "puts a backup in place"),
    "worker": ("contextlab.management.commands.worker", "does jobs, with Redis"),
    "migrate": ("django.core.management.commands.migrate", "brings the database up to date"),
}
OF_DJANGO = {
    "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color",
    "--force-color", "--skip-checks",
}  # fmt: skip
"""Options that every command has and nobody needs: they work, and help leaves them out."""

READ_TABLES = {"import", "demo", "worker", "show", "tail", "export", "token", "invite", "simulate"}
"""Commands that find tables: `serve` sees to its own, the others make or need none."""

EXIT_CODES = """Exit codes: 0 it worked; 1 it did not, and the last line says why; 2 the command
line was not understood, or names what is not there; 130 stopped with Ctrl+C; 141 nobody reads the
output on."""


def available() -> dict[str, str]:
    """Commands of this version, with what they do."""
    return {name: text for name, (module, text) in COMMANDS.items() if _exists(module)}


def _exists(module: str) -> bool:
    # Looked up by its file: importing it would load half of Django for a list of names.
    parent, _, name = module.rpartition(".")
    spec = find_spec(parent)
    places = (spec.submodule_search_locations or []) if spec else []
    return any(Path(place, f"{name}.py").exists() for place in places)


def usage() -> str:
    """What `contextlab --help` prints."""
    lines = [f"  {name:<10} {text}" for name, text in available().items()]
    return "\n".join(
        ["usage: contextlab COMMAND [OPTIONS]", "", *lines, ""]
        + ["`contextlab COMMAND --help` lists a command's options.", EXIT_CODES]
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help", "help"):
        print(usage(), flush=True)
        sys.exit(0 if given else 2)
    if given[0] == "--version":
        print(__version__)
        sys.exit(0)
    name = given[0]
    if name not in available():
        sys.exit(_complain(f"There is no command {name!r}. Try: {', '.join(available())}."))
    try:
        sys.exit(run(name, given[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as in `contextlab show … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def run(name: str, arguments: list[str]) -> int:
    """Runs a command as its own program would; returns its exit code.

    What a user did wrong is one sentence on stderr, without the name of an exception.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    import django
    from django.core.management import CommandError, load_command_class
    from django.db import DatabaseError

    try:
        django.setup()
    except ValueError as problem:  # a setting that cannot be what it is
        return _complain(f"{str(problem).removesuffix('.')}.")
    except OSError as problem:  # the data directory, which the settings make
        return _failed(problem)
    from sessions.models.blobs import DamagedBlob
    from sessions.models.values import MissingBlob

    module = COMMANDS[name][0]
    command = load_command_class(module.split(".management.")[0], module.rpartition(".")[2])
    command.suppressed_base_arguments = OF_DJANGO
    # They check what a developer may have done wrong, and load every page and route for it.
    command.requires_system_checks = []
    try:
        options = vars(command.create_parser("contextlab", name).parse_args(arguments))
    except CommandError as problem:
        said = str(problem).removeprefix("Error: ")
        more = f"`contextlab {name} --help` lists what there is."
        return _complain(f"{said[:1].upper()}{said[1:]}. {more}")
    try:
        if name in READ_TABLES:
            from contextlab.schema import bring_up_to_date

            bring_up_to_date()
        command.execute(*options.pop("args", ()), **options)
    except CommandError as problem:
        print(problem, file=sys.stderr)
        return int(problem.returncode)
    except DatabaseError as problem:
        return _complain(f"The database: {problem}. `contextlab doctor` says more.") - 1
    except (MissingBlob, DamagedBlob):
        return _complain("Some of what it holds is missing from the store, or damaged.") - 1
    except BrokenPipeError:
        raise
    except OSError as problem:
        return _failed(problem)
    return 0


def _failed(problem: OSError) -> int:
    where = "" if problem.filename is None else f"{problem.filename}: "
    return _complain(f"{where}{problem.strerror or type(problem).__name__}.") - 1


def _complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
