"""Errors of the Hub, in words that say what to do; no token is ever in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kbprobe.errors import KbprobeError

TOKENS = "https://huggingface.co/settings/tokens"
_TOKEN = re.compile(r"\bhf_(?:jwt|oauth)_[A-Za-z0-9._-]{16,}|\b(?:hf|api_org)_[A-Za-z0-9]{20,}")
_STORAGE = re.compile(r"\b(?:quota|storage|payment|upgrade|exceed)", re.IGNORECASE)
AGAIN = "Publish again: files that have arrived are not sent twice."

OFFLINE = "Offline"
"""The code of errors in huggingface_hub's offline mode."""

REMEDIES: Mapping[str | int, str] = {
    "storage": "the account's storage is full. Free some space, or get more.",
    "GatedRepo": "its files are gated. Ask for access on its page on the Hub.",
    "RevisionNotFound": "there is no such branch, tag or commit. Check --revision.",
    "RepoNotFound": "there is no such dataset, or it is private and this token cannot see it. "
    "Check the name, and whose token HF_TOKEN or hf auth login holds.",
    "anonymous": "this needs a token. Log in (hf auth login), or set HF_TOKEN.",
    401: f"the token is wrong or has expired. Create one at {TOKENS}, then log in again (hf auth "
    "login) or set HF_TOKEN.",
    403: "this token has no right to do that. Publish under a name of your own, or with a token "
    f"that has write access there ({TOKENS}).",
    404: "nothing is there. Check --endpoint and HF_ENDPOINT.",
    409: f"somebody else changed it at the same time. {AGAIN}",
    412: f"somebody else changed it at the same time. {AGAIN}",
    413: "what was sent is too large. Publish a smaller probe (build-probe --limit).",
    429: f"too many requests. Try again {{when}}. {AGAIN}",
    400: "the request was not accepted, for the reason given.",
    500: f"the Hub itself has a problem. Try again later. {AGAIN}",
}
"""What each refusal means and what to do: by kind, by the Hub's error code, by status."""


class HubError(KbprobeError):
    """The Hub refused, or cannot be reached.

    Attributes:
        status: of its response; 0 if there was none.
        wait: seconds after which it wants to be asked again; None if it did not say.
        code: what it calls the error: ``RepoNotFound``, ``RevisionNotFound``, ``GatedRepo`` ...;
            ``OFFLINE`` where it was not asked.
    """

    def __init__(
        self, message: str, status: int = 0, wait: float | None = None, code: str = ""
    ) -> None:
        super().__init__(message)
        self.status, self.wait, self.code = status, wait, code

    @property
    def unreachable(self) -> bool:
        """Whether there was no response: no network, or offline mode."""
        return self.status == 0 or self.code == OFFLINE

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed a moment later."""
        return self.status in (0, 408, 425, 429) or self.status >= 500

    @property
    def conflict(self) -> bool:
        """Whether somebody else has committed in the meantime."""
        return self.status in (409, 412)


def hub_error(error: BaseException, action: str, endpoint: str, token: str | None) -> HubError:
    """Turn an error of huggingface_hub, or of the HTTP library below it, into ours.

    ``action`` says what was being done, and to what; ``token`` is kept out of the message.
    """
    from huggingface_hub.errors import OfflineModeIsEnabled, RepositoryNotFoundError

    if isinstance(error, OfflineModeIsEnabled):
        return HubError(
            f"{action}: HF_HUB_OFFLINE is set, so the Hub is not asked. Unset it.",
            400,
            code=OFFLINE,
        )
    status, said, headers = _response_of(error)
    said = redact(said, token)
    if not status and isinstance(error, ValueError):  # a response 200 that makes no sense
        full = f" Perhaps {REMEDIES['storage']}" if _STORAGE.search(said) else ""
        return HubError(f"{action}: the Hub does not accept it ({said}).{full}", 400)
    if not status:
        return HubError(
            f"{action}: the Hub at {endpoint} cannot be reached, or the connection broke ({said}). "
            f"Check the network, and HF_ENDPOINT. {AGAIN}"
        )
    code = str(headers.get("X-Error-Code") or "")
    # The Hub does not tell "forbidden" from "missing" to those who are not logged in.
    if not code and (status == 404 or isinstance(error, RepositoryNotFoundError)):
        code = "RepoNotFound"
    is_full = status == 402 or (status in (400, 403, 413) and bool(_STORAGE.search(said)))
    anonymous = status == 401 and not token
    kinds: list[str | int] = ["storage"] * is_full + [code] + ["anonymous"] * anonymous + [status]
    kind = next((one for one in kinds if one in REMEDIES), 500 if status >= 500 else 400)
    wait = _wait(headers)
    remedy = REMEDIES[kind].format(when="in a few minutes" if wait is None else f"in {wait:,.0f} s")
    reason = f" ({said})" if said else ""
    return HubError(f"{action}: the Hub answers {status}{reason}: {remedy}", status, wait, code)


def redact(text: str, token: str | None) -> str:
    r"""Return a text on one line, without the token or anything else that looks like one.

    >>> redact("Bearer hf_abcdefghijklmnopqrst\nis bad", None)
    'Bearer (token) is bad'
    """
    found = " ".join(text.split())
    if token:
        found = found.replace(token, "(token)")
    return _TOKEN.sub("(token)", found)[:500]


def has_token(content: bytes, token: str | None) -> bool:
    """Tell whether a file contains the token, or anything that looks like one."""
    text = content.decode("utf-8", errors="replace")
    return bool((token and token in text) or _TOKEN.search(text))


def _response_of(error: BaseException) -> tuple[int, str, Mapping[str, Any]]:
    """Find the server's response behind an error: status, message, headers."""
    cause: BaseException | None = error
    while cause is not None:
        error = cause
        response = getattr(error, "response", None)
        if response is not None:
            said = getattr(error, "server_message", None) or response.headers.get("X-Error-Message")
            return int(response.status_code), str(said or ""), response.headers
        cause = error.__cause__
    return 0, f"{type(error).__name__}: {error}", {}


def _wait(headers: Mapping[str, Any]) -> float | None:
    said = str(headers.get("Retry-After") or "").strip()
    if said.isdecimal():
        return float(said)
    limit = re.search(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", str(headers.get("RateLimit") or ""))
    return float(limit[1]) if limit else None
