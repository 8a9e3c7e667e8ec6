"""Requests to an endpoint: retried if that may help, within a deadline and a budget."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.http import checked_url, is_loopback, printable, retry_after, within

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

API_KEY = "KBPROBE_API_KEY"
"""The environment variable with the key of an endpoint that requires one."""
_SECRET = 8
"""Characters of a key that no answer contains by chance."""

_TEMPORARY = (408, 425, 429)
_CHUNK = 1 << 16
_REMEDIES = {
    401: f"Set the environment variable {API_KEY} to a valid key.",
    403: f"Set the environment variable {API_KEY} to a key that may use this model.",
    404: "Check the address after --endpoint, which usually ends in /v1, and the name after "
    "--model.",
    405: "Check the address after --endpoint, which usually ends in /v1.",
}


class EndpointError(KbprobeError):
    """The endpoint cannot be reached, refuses a request, or answers in a form that is not known."""


class RequestRefused(EndpointError):
    """The endpoint refuses a request, and would refuse it again.

    Attributes:
        status: that of HTTP.
        said: the server's message.
        body: what it sent, with codes besides the message.
    """

    def __init__(self, message: str, status: int, said: str, body: str = "") -> None:
        super().__init__(message)
        self.status, self.said, self.body = status, said, body


class BudgetSpent(KbprobeError):
    """The next request would exceed the budget."""


class Stopped(KbprobeError):
    """Another request failed, so this one is not retried."""


class _Retry(Exception):
    """An attempt failed, but another may succeed after ``wait`` seconds."""

    def __init__(self, error: EndpointError, wait: float = 0.0) -> None:
        super().__init__(str(error))
        self.error, self.wait = error, wait


@dataclass(frozen=True)
class Limits:
    """Limits on time, attempts and amount of requests to an endpoint. Times are in seconds.

    Attributes:
        timeout: the time limit for a whole answer.
        attempts: the maximum number of attempts of a request, if another one may help.
        backoff: the pause before the second attempt, plus or minus half; doubled each time.
        longest_wait: the longest pause that a server may ask for; beyond it we give up.
        max_bytes: the maximum size of an answer.
        requests: the maximum number of requests, including repeated ones; None for any number.
        prompt_tokens: the maximum number of tokens sent; None for any number.
    """

    timeout: float = 120.0
    attempts: int = 6
    backoff: float = 1.0
    longest_wait: float = 300.0
    max_bytes: int = 32 << 20
    requests: int | None = None
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

    def __init__(self, url: str, limits: Limits | None = None, *, send_key: bool = True) -> None:
        """Prepare requests; nothing is sent yet. Without ``send_key`` the key is not sent at all.

        Raises:
            UsageError: the address is not one of http or https, or holds "?", "#" or a password; or
                the key cannot be one.
        """
        self.url = checked_url(url).rstrip("/")
        self.limits = limits or Limits()
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
            EndpointError: there is no answer, or none that is JSON, after all attempts.
            BudgetSpent: the budget does not cover this request.
            Stopped: :meth:`stop` was called meanwhile.
        """
        backoff, attempts = self.limits.backoff, self.limits.attempts
        while True:
            attempts -= 1
            self._pause()
            if content is not None:
                self.budget.spend(tokens)
            try:
                return self._read(path, *self._exchange(path, content))
            except _Retry as retry:
                if retry.wait > self.limits.longest_wait:
                    raise EndpointError(
                        f"{retry.error} It asks to wait {retry.wait:.0f} s. Run the same command "
                        "again then: what was answered is kept."
                    ) from retry
                if not attempts:
                    raise EndpointError(
                        f"{retry.error} That was attempt {self.limits.attempts} of as many. Run "
                        "the same command again to go on: what was answered is kept."
                    ) from retry
                spread = 0.5 + random.random()  # nosec B311 # no secret depends on it
                wait = max(retry.wait, min(backoff * spread, self.limits.longest_wait))
                if retry.wait:  # a busy server is busy for all threads
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                elif self._stop.wait(wait):
                    raise Stopped(str(retry.error)) from retry
                backoff *= 2

    def _pause(self) -> None:
        """Wait until the next request may be sent to the server."""
        while (wait := self._not_before - time.monotonic()) > 0:
            if self._stop.wait(wait):
                raise Stopped(f"{self.url} asked to wait")

    def _exchange(
        self, path: str, content: Mapping[str, Any] | None
    ) -> tuple[Response, bytes | None]:
        """Send one request; return the response and its body, None where that is too long."""
        from requests import ConnectionError as NoConnection
        from requests import RequestException, Timeout
        from requests.exceptions import SSLError

        timeout, session = self.limits.timeout, self._session()

        def exchange() -> tuple[Response, bytes | None]:
            body = None if content is None else json.dumps(content)
            with session.request(
                "GET" if content is None else "POST",
                f"{self.url}/{path}",
                data=body,
                headers={"Content-Type": "application/json"},
                allow_redirects=False,
                stream=True,
                timeout=timeout,
            ) as response:
                read = bytearray()
                for chunk in response.iter_content(_CHUNK):
                    read += chunk
                    if len(read) > self.limits.max_bytes:
                        return response, None
                return response, bytes(read)

        try:
            exchanged = within(timeout, exchange)
            self._reached = True
            return exchanged
        except (TimeoutError, Timeout) as error:
            self._own.session = None  # It may still be in use by an abandoned thread.
            why = f"{self.url} gave no whole answer within {timeout:g} s (--request-timeout)."
            raise _Retry(EndpointError(why)) from error
        except (RequestException, OSError) as error:
            said = self._quoted(str(error))
            ours = EndpointError(f"{self.url} cannot be reached ({type(error).__name__}: {said}).")
            if isinstance(error, SSLError):
                raise ours from error
            if isinstance(error, NoConnection) and not self._reached:
                raise EndpointError(
                    f"{ours} See whether the server runs, and whether this is its address."
                ) from error
            raise _Retry(ours) from error

    def _read(self, path: str, response: Response, body: bytes | None) -> Any:
        """Return an answer's JSON, or raise what its status means."""
        status = response.status_code
        if 300 <= status < 400:
            target = urljoin(self.url, response.headers.get("Location", ""))
            raise EndpointError(
                f"{self.url}/{path} redirects to {self._quoted(target)!r}, which is not followed: "
                "questions and key go only to the address after --endpoint. If that is the right "
                "one, give it there."
            )
        if status == 200 and body is None:
            raise EndpointError(
                f"{self.url}/{path} answers with more than {self.limits.max_bytes:,} bytes: it is "
                "no completions endpoint, or does not heed max_tokens"
            )
        if status == 200 and body is not None:
            try:
                value = self._without_key(json.loads(body))
            except (ValueError, RecursionError) as error:
                start = self._quoted(body.decode("utf-8", "replace"))
                raise _Retry(
                    EndpointError(f"{self.url}/{path} answers with no valid JSON: {start!r}.")
                ) from error
            if isinstance(value, dict) and value.get("error") and "choices" not in value:
                said = self._quoted(server_said(body))
                raise _Retry(EndpointError(f"{self.url}/{path} answers with an error: {said}."))
            return value
        said = self._quoted(" ".join(server_said(body or b"").split()))
        message = f"{self.url}/{path} answers {status}{said and f': {said}'}."
        # With 500, llama-cpp-python refuses parameters, and transformers the list of its models.
        lasting = status == 500 and (path == "models" or "validation error" in said)
        if status in _TEMPORARY or (status >= 500 and not lasting):
            asked = retry_after(response.headers.get("Retry-After", ""), time.time())
            raise _Retry(EndpointError(message), asked or 0.0)
        remedy = _REMEDIES.get(status, "")
        if status in (401, 403) and self._withheld:
            remedy = (
                f"The key in the environment variable {API_KEY} is not sent to an address that a "
                f"suite file names. To send it there, add --key-for {self.url}"
            )
        whole = (body or b"").decode("utf-8", "replace")
        raise RequestRefused(f"{message} {remedy}".strip(), status, said, whole)

    def _without_key(self, value: Any) -> Any:
        """Return an answer without the key, which a server may repeat, and answers are kept."""
        if len(self._key) < _SECRET:
            return value
        written = json.dumps(value, ensure_ascii=False)  # one spelling of every character
        return json.loads(written.replace(json.dumps(self._key)[1:-1], "[key]"))

    def _quoted(self, said: str) -> str:
        """Return a server's message in printable form, without the key."""
        return printable(said.replace(self._key, "[key]") if self._key else said)

    def _session(self) -> Session:
        """Return this thread's session; a session serves one thread at a time."""
        from requests import Session

        session: Session | None = getattr(self._own, "session", None)
        if session is None:
            session = self._own.session = Session()
            # No proxy can reach the loopback interface.
            session.trust_env = not is_loopback(self.url)
            session.headers["User-Agent"] = "kbprobe"
            session.auth = self._sign  # Without it, requests would take a key from .netrc.
        return session

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
