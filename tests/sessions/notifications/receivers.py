"""Real receivers on this machine: one of HTTP requests, and one of mail."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class WebReceiver:
    """Keeps every request; answers the statuses in turn, then 200."""

    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@contextmanager
def web_receiver(*statuses: int) -> Iterator[WebReceiver]:
    kept = WebReceiver(list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            names = {name.lower(): value for name, value in self.headers.items()}
            kept.requests.append((self.path, names, body))
            status = kept.statuses.pop(0) if kept.statuses else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{kept.url}/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class MailReceiver:
    """Keeps every mail: recipients and text; refuses with `refusal` if it is set."""

    refusal: str = ""
    mails: list[tuple[list[str], str]] = field(default_factory=list)
    port: int = 0


@contextmanager
def mail_receiver(refusal: str = "") -> Iterator[MailReceiver]:
    kept = MailReceiver(refusal)

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            to: list[str] = []
            while line := self.rfile.readline().decode().strip():
                command = line.upper()
                if command.startswith("RCPT"):
                    to.append(line.partition("<")[2].rstrip(">"))
                    self.say(kept.refusal or "250 ok")
                elif command == "DATA":
                    self.say("354 go on")
                    lines = list(iter(lambda: self.rfile.readline().decode(), ".\r\n"))
                    kept.mails.append((to, "".join(lines)))
                    self.say("250 taken")
                elif command == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    kept.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
