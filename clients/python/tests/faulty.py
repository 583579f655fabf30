"""A recorder with faults: it hands requests on to the real one, or fails as it is told."""

from __future__ import annotations

import gzip
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: `none`; `cut`: nothing is handed on, and nothing answered; `lose`: handed on, and not answered;
#: `hang`: as `cut`, until it is released; a status: that answer.
Fault = str | int


class FaultyRecorder:
    def __init__(self, target: str) -> None:
        self._target = target
        self.fault: Callable[[list[str]], Fault] = lambda lines: "none"
        self.retry_after: str | None = "0"
        #: The lines of each request, and the bodies as they came.
        self.requests: list[list[str]] = []
        self.released = threading.Event()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                faulty._serve(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"]))
        packed = handler.headers.get("content-encoding") == "gzip"
        lines = (gzip.decompress(body) if packed else body).decode().splitlines()
        self.requests.append(lines)
        fault = self.fault(lines)
        if fault == "hang":
            self.released.wait(60)
        if fault in ("cut", "hang"):
            handler.close_connection = True
            return
        status, answer = (fault, b'{"type":"told","message":"told to fail"}')
        if not isinstance(fault, int):
            status, answer = self._hand_on(handler, body)
        if fault == "lose":
            handler.close_connection = True
            return
        handler.send_response(int(status))
        if self.retry_after is not None and int(status) >= 400:
            handler.send_header("retry-after", self.retry_after)
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def _hand_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        names = ("authorization", "content-type", "content-encoding")
        headers = {name: value for name in names if (value := handler.headers.get(name))}
        request = urllib.request.Request(self._target + handler.path, body, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
