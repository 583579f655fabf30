"""What the Python recorder costs the application, and an import the start of a program."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "python"
sys.path.insert(0, str(CLIENT))

from annals import Annals  # noqa: E402

CHANGES = 100_000
ROUNDS = 5
BEFORE = {"name": "Desk lamp", "price": {"amount": 3990, "currency": "EUR"}, "tags": ["a", "b"]}
AFTER = {**BEFORE, "price": {"amount": 3490, "currency": "EUR"}}


class Sink(BaseHTTPRequestHandler):
    """Answers as a recorder that records everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        read = (
            gzip.decompress(body).count(b"\n")
            if self.headers["content-encoding"]
            else body.count(b"\n")
        )
        counts = {"read": read, "recorded": read}
        counts |= dict.fromkeys(("unchanged", "duplicate", "expired", "ignored"), 0)
        answer = json.dumps({**counts, "rejected": []}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def serve(port: multiprocessing.Queue[int]) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    port.put(server.server_address[1])
    server.serve_forever()


def seconds(work: Callable[[], None]) -> float:
    """Of the processor, all threads together: other programs of the machine do not count."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def bare() -> None:
    """The same values as JSON into a queue: what no recorder can do without."""
    lines: deque[bytes] = deque()
    for number in range(CHANGES):
        change = {"id": str(number), "op": "update", "entity": "product", "entityId": "p-17"}
        lines.append(json.dumps({**change, "before": BEFORE, "after": AFTER}).encode())


def bench_recorder(url: str) -> None:
    annals = Annals(url, "acme", token="x")
    taking, whole, barely = [], [], []
    for _ in range(ROUNDS):
        barely.append(seconds(bare))
        with annals.recorder(url, buffer=CHANGES, buffer_bytes=1 << 30) as recorder:

            def take() -> None:
                for _ in range(CHANGES):
                    recorder.record("update", "product", "p-17", before=BEFORE, after=AFTER)

            taken = seconds(take)
            taking.append(taken)
            whole.append(taken + seconds(lambda: recorder.flush() or sys.exit("not sent")))
        if recorder.dropped or recorder.counts["recorded"] != CHANGES:
            sys.exit(f"dropped {recorder.dropped}")
    fastest = min(barely)
    for name, times in (("record, while it sends", taking), ("record and send", whole)):
        rate, ratio = CHANGES / statistics.median(times), statistics.median(times) / fastest
        print(
            f"{name}: {rate:,.0f} changes a second of a core, {ratio:.1f} times json.dumps and a deque"
        )


def bench_import() -> None:
    def start(program: str) -> float:
        environment = {**os.environ, "PYTHONPATH": str(CLIENT)}
        begun = os.times()
        subprocess.run([sys.executable, "-c", program], check=True, env=environment)
        ended = os.times()
        return sum(ended[2:4]) - sum(begun[2:4])

    programs = {
        "import annals": "import annals",
        "from annals import Annals": "from annals import Annals",
        "import httpx": "import httpx",
    }
    for name, program in programs.items():
        # In turn, so that other work of the machine slows both down.
        pairs = [(start("pass"), start(program)) for _ in range(21)]
        took = statistics.median(after - before for before, after in pairs)
        print(f"{name}: {took * 1000:.0f} ms")


if __name__ == "__main__":
    port: multiprocessing.Queue[int] = multiprocessing.Queue()
    sink = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    sink.start()
    cores = sorted(os.sched_getaffinity(0))
    # The application and the recorder's thread share one core.
    os.sched_setaffinity(0, cores[:1])
    if len(cores) > 1 and sink.pid is not None:
        os.sched_setaffinity(sink.pid, cores[1:])
    bench_recorder(f"http://127.0.0.1:{port.get()}")
    sink.terminate()
    os.sched_setaffinity(0, cores)
    bench_import()
