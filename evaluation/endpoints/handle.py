"""Handles of models behind an endpoint, for runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evaluation.endpoints.chat import ChatEndpoint
from evaluation.endpoints.endpoint import Endpoint
from evaluation.models.capabilities import CHAT, ENDPOINT, Head
from evaluation.models.checkpoint import Checkpoint
from evaluation.models.handle import ModelHandle, require_packages
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from evaluation.models.handle import Loaded
    from evaluation.options import ModelOptions

_BATCH_TOKENS = 16384
"""Estimated tokens of the prompts between two reports of progress."""
_USUAL_DTYPE = "bfloat16"
"""The dtype in which servers run models by default, which decides what counts as a tie."""


class EndpointHandle(ModelHandle):
    """A model behind an endpoint, for any number of runs."""

    def __init__(
        self, model: str, options: ModelOptions, root: Path, *, connect: bool = True
    ) -> None:
        """Identify the endpoint, unless not to ``connect``.

        ``root`` is the folder of caches, where answers are kept.

        Raises:
            UsageError: the address is invalid, or the endpoint has no such model.
            KbprobeError: it cannot be reached or used, or torch is not installed.
        """
        # A test may replace the limits.
        from evaluation.endpoints.client import PromptLimits

        require_packages()
        head, kind = (CHAT, ChatEndpoint) if options.chat else (ENDPOINT, Endpoint)
        self._endpoint = kind(
            str(options.endpoint),
            model,
            root,
            PromptLimits(
                timeout=options.request_timeout,
                requests=options.max_requests,
                prompt_tokens=options.max_prompt_tokens,
            ),
            options.concurrency,
            connect=connect,
            send_key=options.send_key,
        )
        owner = self._endpoint.owner
        self.checkpoint = Checkpoint(
            id=model,
            head=head,
            capabilities=head.gives,
            architecture=f"endpoint ({owner})" if owner else "endpoint",
            weights_sha256=self._endpoint.digest,
            tokenizer_sha256=self._endpoint.tokenizer_digest,
        )
        self._place = "cpu", _USUAL_DTYPE if options.dtype == "auto" else options.dtype
        self.batch_tokens = options.batch_tokens or _BATCH_TOKENS

    @property
    def device_name(self) -> str:
        """Return ``endpoint``, since its device is unknown."""
        return ENDPOINT.name

    def load(self, head: Head) -> Loaded:
        """Return the model behind the endpoint, and no tokenizer.

        Raises:
            UsageError: weights are requested.
        """
        if head is not self.checkpoint.head:
            raise UsageError(
                f"{self.checkpoint.id} is behind an endpoint, and cannot be loaded as a "
                f"{head.label}: leave --scorer and --train out, or name a checkpoint."
            )
        loaded: Any = (self._endpoint, None)
        return cast("Loaded", loaded)
