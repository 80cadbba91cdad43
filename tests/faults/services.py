"""Redis, PostgreSQL, web server and workers, each a process that a test may kill and restart."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import preloaded
from tests.conftest import ROOT, Server, free_port, start_server, unavailable, wait_until

IN_FULL = "CONTEXTLAB_FAULT_STEPS" in os.environ
"""Whether this is the long campaign, with the product's own settings."""

SOONER = {
    "CONTEXTLAB_JOB_LEASE_SECONDS": "6",
    "CONTEXTLAB_JOB_RETRY_SECONDS": "0.5",
    "CONTEXTLAB_SWEEP_SECONDS": "0.5",
}
"""Shorter waiting times after a fault."""


class Redis:
    """A Redis that keeps nothing over a restart."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            unavailable("redis-server is not installed")
        self.program, self.folder, self.port = str(program), folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        """Start, and wait until it answers."""
        self.process = subprocess.Popen(
            [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )
        wait_until(self.answers)

    def answers(self) -> bool:
        """Whether it answers."""
        import redis

        with redis.Redis.from_url(self.url) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

    def kill(self) -> None:
        """Kill it, and everything it held."""
        self.process.kill()
        self.process.wait()


class Postgres:
    """A private PostgreSQL server. It refuses to run as root; then it runs as user postgres."""

    def __init__(self) -> None:
        found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
        inits = sorted(found, key=lambda path: int(path.parts[-3]))
        initdb = str(inits[-1]) if inits else shutil.which("initdb")
        if initdb is None:
            unavailable("PostgreSQL is not installed")
        self.bin = Path(str(initdb)).parent
        self.folder = Path(tempfile.mkdtemp(prefix="contextlab-postgres-"))
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.port = free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self._run("initdb", "-D", "data", "-A", "trust", "-U", "postgres", "-N")
        self.start()

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")

    def crash(self) -> None:
        """Stop without checkpoint or notice to clients."""
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "stop")

    def remove(self) -> None:
        """Stop permanently."""
        self.crash()
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        user = "postgres" if os.getuid() == 0 else getpass.getuser()
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.folder,
            user=user if os.getuid() == 0 else None,
            stdout=subprocess.DEVNULL,  # a pipe would stay open as long as the server runs
            check=False,
        )
        assert done.returncode == 0, (program, (self.folder / "log").read_text())


class Deployment:
    """The deployment of compose.yaml: one web server and two workers with one database and one
    Redis."""

    def __init__(self, folder: Path, redis: Redis, postgres: Postgres) -> None:
        self.folder, self.redis, self.postgres = folder, redis, postgres
        self.environment = {
            "DATABASE_URL": postgres.url,
            "REDIS_URL": redis.url,
            "CONTEXTLAB_SECRET_KEY": "a secret of this test alone",
        }
        if not IN_FULL:
            self.environment |= SOONER
        assert self._start("migrate").wait() == 0
        self.workers = [self._start("worker"), self._start("worker")]
        self.web: Server = start_server(folder, **self.environment)

    def _start(self, command: str) -> preloaded.Process:
        with (self.folder / "workers.log").open("a") as log:
            return preloaded.start(
                ["-m", "contextlab.cli", command],
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "CONTEXTLAB_DATA_DIR": str(self.folder),
                    **self.environment,
                },
                stdout=log.fileno(),
                stderr=log.fileno(),
            )

    def kill_worker(self, number: int) -> None:
        """Kill a worker with -9; another replaces it, as in compose.yaml."""
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._start("worker")

    def kill_web(self) -> None:
        """Kills the web server with -9, and starts another on its port."""
        self.web.kill()
        self.web = start_server(self.folder, PORT=str(self.web.port), **self.environment)

    def remove(self) -> None:
        """Stop everything it started."""
        for worker in self.workers:
            worker.terminate()
        self.web.kill()
        for worker in self.workers:
            worker.wait(60)


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """A deployment, and its end."""
    with ExitStack() as stack:
        redis = Redis(folder)
        stack.callback(redis.kill)
        postgres = Postgres()
        stack.callback(postgres.remove)
        made = Deployment(folder, redis, postgres)
        stack.callback(made.remove)
        yield made
