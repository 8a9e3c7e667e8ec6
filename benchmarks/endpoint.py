"""Requests per second of an evaluation behind an endpoint, compared with a bare client.

    python benchmarks/endpoint.py [--concurrency 32] [--milliseconds 100] [--rows 1000] [--json]

A server on the loopback interface, in a process of its own, answers each prompt with tokens and
log-probabilities that follow from its text, after 0.5 to 1.5 times ``--milliseconds``, which follow
from it, too. ``evaluate-probe`` asks it about a real build with ``--concurrency`` requests in
flight; then a bare client (threads with a connection each, which send the same bytes and look at no
answer) repeats its requests in their order, and evaluation and bare client once more. The server
takes the time from the first prompt's arrival to the last answer. *What the server can do* is the
number of requests in flight divided by the mean answer time: no client is faster. The benchmark
fails if both do not send exactly the same requests.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import http.client
import json
import multiprocessing
import re
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from processes import ROOT, positive, run

sys.path.insert(0, str(ROOT))
HEADERS = {"Content-Type": "application/json"}


class Server(asyncio.Protocol):
    """A connection to the server: requests one after the other, each answered after its time."""

    asked: list[tuple[bytes, float, float]]
    """Each prompt's request, when it came, and when it was answered."""
    seconds: float

    def connection_made(self, transport: Any) -> None:
        """Take the connection."""
        self._transport, self._data = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer a request as soon as it is complete."""
        self._data += data
        head, blank, body = self._data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not blank or len(body) < (int(length[1]) if length else 0):
            return
        self._data = b""
        if head.startswith(b"GET"):
            self._answer({"data": [{"id": "model"}]})
            return
        came, share = time.perf_counter(), hashlib.sha256(body).digest()[0] / 255
        wait = self.seconds * (0.5 + share)
        asyncio.get_running_loop().call_later(wait, self._answer_prompt, body, came)

    def _answer_prompt(self, body: bytes, came: float) -> None:
        prompt = json.loads(body)["prompt"]
        tokens = [*re.findall(r"\s*\S+|\s+$", prompt), " so"]
        log_probs = [None, *(-float(len(token)) for token in tokens[1:])]
        self._answer({
            "choices": [{
                "text": "".join(tokens),
                "logprobs": {"tokens": tokens, "token_logprobs": log_probs},
            }],
            "usage": {"completion_tokens": 1},
        })  # fmt: skip
        self.asked.append((body, came, time.perf_counter()))

    def _answer(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        self._transport.write(head.encode() + b"\r\n\r\n" + body)


def serve(pipe: Connection, seconds: float) -> None:
    """Serve until the pipe is closed; send the port, and on demand what was asked since."""

    async def until_closed() -> None:
        Server.asked, Server.seconds = [], seconds
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        closed = asyncio.Event()

        def tell() -> None:
            try:
                pipe.recv()
            except EOFError:
                closed.set()
                return
            pipe.send(Server.asked)
            Server.asked = []

        loop.add_reader(pipe.fileno(), tell)
        await closed.wait()

    asyncio.run(until_closed())


def bare(port: int, bodies: list[bytes], concurrency: int) -> None:
    """Send requests in their order, so many at a time."""
    waiting = iter(bodies)
    lock = threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                body = next(waiting, None)
            if body is None:
                connection.close()
                return
            connection.request("POST", "/v1/completions", body, HEADERS)
            connection.getresponse().read()

    threads = [threading.Thread(target=work) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Run the benchmark and print the results."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--concurrency", type=positive, default=32)
    options.add_argument("--milliseconds", type=positive, default=100)
    options.add_argument("--rows", type=positive, default=500)
    options.add_argument("--shots", type=int, default=8)
    options.add_argument("--rounds", type=positive, default=3)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(theirs, given.milliseconds / 1000), daemon=True
    )
    server.start()
    theirs.close()
    port = ours.recv()

    def asked() -> list[tuple[bytes, float, float]]:
        ours.send(None)
        found: list[tuple[bytes, float, float]] = ours.recv()
        return found

    rates: dict[str, list[float]] = {"evaluation": [], "bare client": []}
    processor, limit = 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        probe = str(Path(folder, "probe"))
        build = [sys.executable, "-m", "builders.cli", "multihop_comparison", "--no-audit"]
        run([*build, "--limit", str(10 * given.rows), "-o", probe])
        for number in range(given.rounds):
            words = [sys.executable, "-m", "evaluation.cli", probe, "-m", "model", "--limit"]
            words += [str(given.rows), "--endpoint", f"http://127.0.0.1:{port}/v1"]
            words += ["--concurrency", str(given.concurrency), "--shots", str(given.shots)]
            cache = str(Path(folder, f"cache-{number}"))
            done = run([*words, "-o", f"{folder}/results-{number}"], KBPROBE_CACHE=cache)
            _, *sent = asked()  # The first one identifies the model.
            bodies = [body for body, _, _ in sorted(sent, key=lambda one: one[1])]
            bare(port, bodies, given.concurrency)
            again = asked()
            if sorted(bodies) != sorted(body for body, _, _ in again):
                raise SystemExit("the evaluation and the bare client do not send the same requests")
            for name, requests in (("evaluation", sent), ("bare client", again)):
                seconds = max(end for *_, end in requests) - min(came for _, came, _ in requests)
                rates[name].append(len(requests) / seconds)
            waits = [end - came for _, came, end in again]
            limit = given.concurrency * len(waits) / sum(waits)
            processor = 1000 * done.processor / len(sent)
    ours.close()
    found = {
        "requests": len(bodies),
        "what the server can do, requests/s": limit,
        **{f"{name}, requests/s": max(values) for name, values in rates.items()},
        "evaluation / what the server can do": max(rates["evaluation"]) / limit,
        "evaluation / bare client": max(rates["evaluation"]) / max(rates["bare client"]),
        "evaluation, ms of processor a request": processor,
    }
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:40} {value:,.2f}" if isinstance(value, float) else f"{name:40} {value:,}")


if __name__ == "__main__":
    main()
