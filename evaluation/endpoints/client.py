"""Requests to an endpoint: retried if that may help, within a deadline and a budget."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from kbprobe.errors import UsageError
from kbprobe.http import (
    TEMPORARY,
    BudgetSpent,
    JsonRequest,
    Limits,
    Reply,
    RequestRefused,
    ServerError,
    Stopped,
    checked_url,
    is_loopback,
    open_session,
    printable,
    retried,
    retry_after,
)

if TYPE_CHECKING:
    from requests import PreparedRequest

API_KEY = "KBPROBE_API_KEY"
"""The environment variable with the key of an endpoint that requires one."""
_SECRET = 8
"""Characters of a key that no answer contains by chance."""

_AGAIN = "Run the same command again to go on: what was answered is kept."
_REMEDIES = {
    401: f"Set the environment variable {API_KEY} to a valid key.",
    403: f"Set the environment variable {API_KEY} to a key that may use this model.",
    404: "Check the address after --endpoint, which usually ends in /v1, and the name after "
    "--model.",
    405: "Check the address after --endpoint, which usually ends in /v1.",
}


@dataclass(frozen=True)
class PromptLimits(Limits):
    """Limits on time, attempts and amount of requests to an endpoint.

    Attributes:
        prompt_tokens: the maximum number of tokens sent; None for any number.
    """

    prompt_tokens: int | None = None


class Budget:
    """The amounts that have been sent and may be sent; thread-safe."""

    def __init__(self, requests: int | None, prompt_tokens: int | None) -> None:
        self.requests = self.prompt_tokens = 0
        self._limits = requests, prompt_tokens
        self._lock = threading.Lock()

    def spend(self, tokens: int) -> None:
        """Count a request whose prompt has about this many tokens.

        Raises:
            BudgetSpent: it would exceed the budget; it is not counted.
        """
        with self._lock:
            most_requests, most_tokens = self._limits
            if most_requests is not None and self.requests >= most_requests:
                raise BudgetSpent(f"--max-requests {most_requests} is reached")
            if most_tokens is not None and self.prompt_tokens + tokens > most_tokens:
                raise BudgetSpent(f"--max-prompt-tokens {most_tokens} is reached")
            self.requests += 1
            self.prompt_tokens += tokens

    def correct(self, difference: int) -> None:
        """Add the tokens that a prompt had beyond the estimate counted for it."""
        with self._lock:
            self.prompt_tokens += difference


class Client:
    """Sends JSON to one endpoint and reads its answers; thread-safe.

    The key in the environment variable :data:`API_KEY` is sent as a bearer token only to this
    address: redirections are refused, and ``.netrc`` is not read. No message repeats it.
    """

    def __init__(
        self, url: str, limits: PromptLimits | None = None, *, send_key: bool = True
    ) -> None:
        """Prepare requests; nothing is sent yet. Without ``send_key`` the key is not sent at all.

        Raises:
            UsageError: the address is not one of http or https, or holds "?", "#" or a password; or
                the key cannot be one.
        """
        self.url = checked_url(url).rstrip("/")
        self.limits = limits or PromptLimits()
        self.budget = Budget(self.limits.requests, self.limits.prompt_tokens)
        self._key = os.environ.get(API_KEY, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(
                f"the environment variable {API_KEY} holds what cannot be a key: line breaks, or "
                "characters other than ASCII"
            )
        self._withheld = bool(self._key) and not send_key
        if self._withheld:
            self._key = ""
        self._not_before, self._reached = 0.0, False
        self._stop = threading.Event()
        self._own = threading.local()

    def stop(self) -> None:
        """Make requests that wait for another attempt give up."""
        self._stop.set()

    def start(self) -> None:
        """Accept requests again after :meth:`stop`."""
        self._stop.clear()

    def send(self, path: str, content: Mapping[str, Any] | None = None, tokens: int = 0) -> Any:
        """Send a request, with retries if these may help, and return the answer's JSON.

        Args:
            path: the path below the endpoint's address.
            content: posted as JSON; None: a GET request, which costs nothing.
            tokens: the estimated number of tokens of the prompt, for the budget.

        Raises:
            RequestRefused: the status says that the request is wrong.
            ServerError: there is no answer, or none that is JSON, after all attempts.
            BudgetSpent: the budget does not cover this request.
            Stopped: :meth:`stop` was called meanwhile.
        """

        def attempt() -> Any:
            self._pause()
            if content is not None:
                self.budget.spend(tokens)
            return self._read(path, self._exchange(path, content))

        return retried(attempt, self.limits, self._wait, _AGAIN)

    def _wait(self, error: ServerError, seconds: float) -> None:
        """Wait before another attempt; a busy server is busy for all threads."""
        if error.wait:
            self._not_before = max(self._not_before, time.monotonic() + seconds)
        elif self._stop.wait(seconds):
            raise Stopped(str(error)) from error

    def _pause(self) -> None:
        """Wait until the next request may be sent to the server."""
        while (wait := self._not_before - time.monotonic()) > 0:
            if self._stop.wait(wait):
                raise Stopped(f"{self.url} asked to wait")

    def _exchange(self, path: str, content: Mapping[str, Any] | None) -> Reply:
        """Send one request and return the response."""
        from requests import ConnectionError as NoConnection
        from requests import Timeout
        from requests.exceptions import SSLError

        body = None if content is None else json.dumps(content)
        limits = self.limits
        try:
            reply = self._request("GET" if body is None else "POST", path).exchange(limits, body)
        except (TimeoutError, Timeout) as error:
            del self._own.session  # It may still be in use by an abandoned thread.
            raise ServerError(
                f"{self.url} gave no whole answer within {limits.timeout:g} s (--request-timeout).",
                transient=True,
            ) from error
        except OSError as error:
            ours = f"{self.url} cannot be reached ({type(error).__name__}: "
            ours += f"{self._quoted(str(error))})."
            final = isinstance(error, SSLError)
            if not final and isinstance(error, NoConnection) and not self._reached:
                ours += " See whether the server runs, and whether this is its address."
                final = True
            raise ServerError(ours, transient=not final) from error
        self._reached = True
        return reply

    def _read(self, path: str, reply: Reply) -> Any:
        """Return an answer's JSON, or raise what its status means."""
        status, body = reply.status, reply.body if reply.complete else b""
        if 300 <= status < 400:
            target = urljoin(self.url, reply.headers.get("Location", ""))
            raise ServerError(
                f"{self.url}/{path} redirects to {self._quoted(target)!r}, which is not followed: "
                "questions and key go only to the address after --endpoint. If that is the right "
                "one, give it there."
            )
        if status == 200 and not reply.complete:
            raise ServerError(
                f"{self.url}/{path} answers with more than {self.limits.max_bytes:,} bytes: it is "
                "no completions endpoint, or does not heed max_tokens"
            )
        if status == 200:
            try:
                value = self._without_key(json.loads(body))
            except (ValueError, RecursionError) as error:
                start = self._quoted(body.decode("utf-8", "replace"))
                raise ServerError(
                    f"{self.url}/{path} answers with no valid JSON: {start!r}.", transient=True
                ) from error
            if isinstance(value, dict) and value.get("error") and "choices" not in value:
                said = self._quoted(server_said(body))
                raise ServerError(
                    f"{self.url}/{path} answers with an error: {said}.", transient=True
                )
            return value
        said = self._quoted(" ".join(server_said(body).split()))
        message = f"{self.url}/{path} answers {status}{said and f': {said}'}."
        # With 500, llama-cpp-python refuses parameters, and transformers the list of its models.
        lasting = status == 500 and (path == "models" or "validation error" in said)
        if not lasting and (status in TEMPORARY or status >= 500):
            asked = retry_after(reply.headers.get("Retry-After", ""), time.time())
            raise ServerError(message, status, asked, transient=True)
        remedy = _REMEDIES.get(status, "")
        if status in (401, 403) and self._withheld:
            remedy = (
                f"The key in the environment variable {API_KEY} is not sent to an address that a "
                f"suite file names. To send it there, add --key-for {self.url}"
            )
        whole = body.decode("utf-8", "replace")
        raise RequestRefused(f"{message} {remedy}".strip(), status, said, whole)

    def _without_key(self, value: Any) -> Any:
        """Return an answer without the key, which a server may repeat, and answers are kept."""
        if len(self._key) < _SECRET:
            return value
        written = json.dumps(value, ensure_ascii=False)  # one spelling of every character
        return json.loads(written.replace(json.dumps(self._key)[1:-1], "[key]"))

    def _quoted(self, said: str) -> str:
        """Return a server's message in printable form, without the key."""
        return printable(said, secret=self._key)

    def _request(self, method: str, path: str) -> JsonRequest:
        """Return a request of this thread's session; a session serves one thread at a time."""
        own = self._own
        if not hasattr(own, "session"):
            # No proxy can reach the loopback interface.
            proxies = not is_loopback(self.url)
            own.session = open_session(Limits(attempts=1), proxies=proxies, sign=self._sign)
            own.requests = {}
        if path not in own.requests:
            own.requests[path] = JsonRequest(own.session, method, f"{self.url}/{path}")
        found: JsonRequest = own.requests[path]
        return found

    def _sign(self, request: PreparedRequest) -> PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def server_said(body: bytes) -> str:
    """Return the message in the body of an error, as OpenAI, vLLM, llama.cpp and FastAPI put it."""
    text = body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
        for _ in range(3):
            known = value.keys() if isinstance(value, dict) else ()
            names = [name for name in ("error", "message", "detail") if name in known]
            if not names:
                break
            value = value[names[0]]
        # Written anew, since escapes would hide a key that is to be replaced.
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
