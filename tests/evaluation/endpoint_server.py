"""A completions endpoint on the loopback interface, of a tiny model, that can misbehave.

It answers as servers do: ``vllm`` (tokens decoded one by one, the token for the beginning of a
text shown), ``llama-cpp-python`` (that token not shown), ``llama.cpp`` (log-probabilities of what
is generated alone), ``openai`` (a chat service that refuses echo), ``transformers`` (whose list of
models fails).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch


@dataclass
class Fault:
    """What a request gets instead of its answer.

    Attributes:
        status: of the response.
        headers: of the response, beside its length.
        body: of the response.
        cut: send so many bytes of the true answer, and hang up.
        seconds: wait before the answer.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    seconds: float = 0.0


@dataclass
class Script:
    """What a server serves, what it was asked, and what it does wrong.

    Attributes:
        kind: how it answers; see the module.
        name: of its one model.
        faults: of the next completions, in turn; None is none.
        change: what is done to every answer.
        longest: the most tokens of a prompt.
        write: what is answered to a request of a chat.
        top: the log-probabilities of the first tokens of that answer; None: they are not given.
        refused: parameters of a chat that are refused by their name.
        refuse: the status and error of a request of a chat that is refused.
        formats: types of ``response_format`` that it takes.
    """

    model: Any
    tokenizer: Any
    kind: str = "vllm"
    name: str = "tiny"
    url: str = ""
    faults: list[Fault | None] = field(default_factory=list)
    change: Callable[[dict[str, Any]], Any] = lambda answer: answer
    longest: int = 128
    write: Callable[[dict[str, Any]], str] = lambda asked: "A"
    top: Callable[[dict[str, Any]], dict[str, float]] | None = None
    refused: tuple[str, ...] = ()
    refuse: Callable[[dict[str, Any]], tuple[int, Any] | None] = lambda asked: None
    formats: set[str] = field(default_factory=set)
    prompts: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)
    there: int = 0
    together: int = 0
    connections: int = 0


def answer(script: Script, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Complete a prompt by one token, which is the most likely one."""
    if script.kind == "openai":
        said = "Setting 'echo' and 'logprobs' at the same time is not supported for this model."
        return 400, {"error": {"message": said, "type": "invalid_request_error"}}
    prompt, tokenizer = asked["prompt"], script.tokenizer
    ids = tokenizer(prompt)["input_ids"]
    if len(ids) > script.longest:
        said = f"This model's maximum context length is {script.longest} tokens."
        return 400, {"object": "error", "message": said, "code": 400}
    with torch.no_grad(), script.lock:
        logits = script.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    new = int(logits[-1].argmax())
    every = [*ids, new]
    values = [None, *(float(logits[at - 1, every[at]]) for at in range(1, len(every)))]
    end = tokenizer.decode([new])
    usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(every)}
    choice: dict[str, Any] = {"index": 0, "text": prompt + end, "finish_reason": "length"}
    if script.kind == "llama.cpp":
        content = [{"id": new, "token": end, "logprob": values[-1], "top_logprobs": []}]
        choice |= {"text": end, "logprobs": {"content": content}}
    else:
        texts = [tokenizer.decode([token]) for token in every]
        if script.kind == "llama-cpp-python":
            if ids[0] == tokenizer.bos_token_id and not prompt.startswith(texts[0]):
                texts, values = texts[1:], values[1:]
            texts = [text.replace("\N{REPLACEMENT CHARACTER}", "") for text in texts]
        offsets = [sum(map(len, texts[:at])) for at in range(len(texts))]
        choice["logprobs"] = {
            "tokens": texts,
            "token_logprobs": values,
            "top_logprobs": [None if one is None else {"?": one} for one in values],
            "text_offset": offsets,
        }
    return 200, {"object": "text_completion", "choices": [choice], "usage": usage}


def chat_answer(script: Script, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Answer the last message of a chat, as the script has it."""
    if refused := [name for name in script.refused if name in asked]:
        return 400, {"error": {"message": f"Unsupported parameter: '{refused[0]}'."}}
    if (wrong := script.refuse(asked)) is not None:
        return wrong[0], {"error": wrong[1]}
    if asked.get("response_format", {}).get("type", "") not in {"", *script.formats}:
        # As llama-cpp-python puts it.
        return 500, {"error": {"message": "1 validation error:\n  response_format: not 'text'"}}
    text = script.write(asked)
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
        "logprobs": None,
    }
    if asked.get("logprobs") and script.top is not None:
        top = [{"token": key, "logprob": value} for key, value in script.top(asked).items()]
        choice["logprobs"] = {"content": [{"token": text[:1], "top_logprobs": top}]}
    usage = {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21}
    return 200, {"object": "chat.completion", "choices": [choice], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Connections are used again, as those of real servers are.
    disable_nagle_algorithm = True  # It holds a body back until its head is acknowledged: 40 ms.

    def setup(self) -> None:
        super().setup()
        with self.script.lock:
            self.script.connections += 1

    def do_GET(self) -> None:
        if self.script.kind == "transformers":
            self.reply(500, b"Internal Server Error", {})
            return
        models = [{"id": self.script.name, "object": "model", "owned_by": self.script.kind}]
        self.reply(200, json.dumps({"object": "list", "data": models}).encode(), {})

    def do_POST(self) -> None:
        script = self.script
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with script.lock:
            chat = self.path.endswith("/chat/completions")
            script.prompts.append(asked["messages"][-1]["content"] if chat else asked["prompt"])
            script.asked.append(asked)
            script.headers.append(dict(self.headers))
            fault = script.faults.pop(0) if script.faults else None
            script.there += 1
            script.together = max(script.together, script.there)
        try:
            if fault is not None and fault.seconds:
                time.sleep(fault.seconds)
            if fault is not None and fault.cut is None and not fault.seconds:
                self.reply(fault.status, fault.body, fault.headers)
                return
            status, said = (chat_answer if chat else answer)(script, asked)
            body = json.dumps(script.change(said) if status == 200 else said).encode()
            if fault is not None and fault.cut is not None:
                self.reply(200, body[: fault.cut], {"Content-Length": str(len(body))})
                self.close_connection = True
                return
            self.reply(status, body, {})
        finally:
            with script.lock:
                script.there -= 1

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        all_headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**all_headers, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    @property
    def script(self) -> Script:
        return self.server.script  # type: ignore[attr-defined,no-any-return]

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients that hang up are what is tested


@contextmanager
def serving(model: Any, tokenizer: Any, **how: Any) -> Iterator[Script]:
    """Serve a model, and give the script of the server."""
    server = Server(("127.0.0.1", 0), Handler)
    script = server.script = Script(model, tokenizer, **how)  # type: ignore[attr-defined]
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
