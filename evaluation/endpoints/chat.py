"""Chat endpoints: requests, the parameters that a server accepts, and its answers.

A question is posted to ``/chat/completions`` with temperature 0 and a fixed seed, and with
``logprobs`` and ``top_logprobs`` if these are wanted, or with a schema of the answer
(``response_format``). Servers accept different parameters: a short question is sent first, and
parameters that the server refuses by name are left out of all others. When a prompt is refused, the
short question tells whether anything but the prompt is refused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from evaluation.endpoints.answers import log_prob_of, only_choice
from evaluation.endpoints.served import ServedModel, digest_of, in_threads, prompt_refused
from evaluation.items.orders import LETTERS
from kbprobe.errors import UsageError
from kbprobe.http import RequestRefused, ServerError
from kbprobe.parsing import MAX_INTEGER

logger = logging.getLogger(__name__)

Message = dict[str, str]
Wanted = Literal["auto", "letters", "text", "json"]
_TOP, _FEWER = 20, 5
"""Numbers of likeliest tokens to request: first choice, and if a server gives fewer."""
_TEXTS = {"text", "output_text"}
_NO_TEXTS = {"thinking", "reasoning", "redacted_thinking", "refusal"}
"""Types of an answer's parts that are, and are not, what it says."""


class Chat(NamedTuple):
    """A question of a chat.

    Attributes:
        messages: the list of messages, as JSON.
        letters: the number of lettered choices.
    """

    messages: str
    letters: int


_FIRST = Chat(
    json.dumps(
        [{"role": "user", "content": "Which can fly?\nA. a robin\nB. a table\nAnswer A or B."}]
    ),
    letters=2,
)
ANSWER = "answer"
"""The one property of an answer that is an object: a letter."""


def _response_format(form: str, letters: int) -> dict[str, Any]:
    """Return the parameter that admits an object with one of the letters, and nothing else.

    ``json_schema`` is OpenAI's form, also of vLLM and SGLang; ``json_object`` llama-cpp-python's.
    """
    schema = {
        "type": "object",
        "properties": {ANSWER: {"type": "string", "enum": list(LETTERS[:letters])}},
        "required": [ANSWER],
        "additionalProperties": False,
    }
    if form == "json_object":
        return {"type": form, "schema": schema}
    return {"type": form, form: {"name": ANSWER, "strict": True, "schema": schema}}


class ChatReply(NamedTuple):
    """What a model wrote.

    Attributes:
        text: the whole text.
        tokens: the number of tokens of the prompt and the text.
        cut: whether it ended because it was too long.
        first: log-probabilities (nats) of the most likely first tokens; None if unknown.
        filtered: whether a content filter refused the question, or ended the answer.
    """

    text: str
    tokens: int
    cut: bool
    first: dict[str, float] | None = None
    filtered: bool = False


class ChatEndpoint(ServedModel):
    """One model behind a chat endpoint.

    It shows neither weights nor log-probabilities of a text, and answers may vary: the model is
    identified only by the endpoint's address and its name.
    """

    def _identify(self, connect: bool) -> None:
        self.digest = self.tokenizer_digest = digest_of(["chat", self.url, self.model])
        self._agreed: dict[str, dict[str, Any]] = {}

    def gives_letters(self, wanted: Wanted, max_tokens: int) -> bool:
        """Return whether answers are read by the probabilities of letters; see :meth:`replies`."""
        return "logprobs" in self._parameters(wanted, max_tokens)

    def known(self, chat: Chat, wanted: Wanted, max_tokens: int) -> ChatReply | None:
        """Return the stored answer to a chat; None if it has not been sent."""
        parameters = self._known_parameters(wanted, max_tokens)
        kept = parameters and self.store.find("reply", *self._request(chat, parameters))
        # Earlier versions stored any refusal as an empty answer, without the last field.
        refusal = kept and len(kept) < len(ChatReply._fields) and kept[:3] == ["", 0, True]
        return None if kept is None or refusal else ChatReply(*kept)

    def replies(
        self, chats: Sequence[Chat], wanted: Wanted, max_tokens: int
    ) -> Iterator[tuple[int, ChatReply]]:
        """Send chats, and yield the index and answer of each as it arrives and is stored.

        Args:
            chats: the questions.
            wanted: the probabilities of letters, or the text, or an object with a letter; or
                letters or text, whichever the endpoint gives.
            max_tokens: the maximum length of an answer.

        Raises:
            BudgetSpent: the budget ends before the chats do; what was answered is kept.
            ServerError: the endpoint gives no answer, or one that cannot be used.
            CacheError: the answers cannot be kept.
        """
        self.client.start()
        parameters = self._parameters(wanted, max_tokens)

        def ask(chat: Chat) -> ChatReply:
            try:
                answer = self._send(chat, parameters)
            except RequestRefused as error:
                refused = prompt_refused(error, lambda: self._send(_FIRST, parameters))
                return ChatReply("", 0, not refused.filtered, filtered=refused.filtered)
            return read_reply(answer, self.url)

        for number, reply in in_threads(ask, chats, self.concurrency, self.client.stop):
            self.store.add("reply", reply, *self._request(chats[number], parameters))
            yield number, reply

    def _request(self, chat: Chat, parameters: Mapping[str, Any]) -> tuple[str, str, str]:
        return self.digest, json.dumps(parameters, sort_keys=True), chat.messages

    def _send(self, chat: Chat, parameters: Mapping[str, Any]) -> Any:
        messages: list[Message] = json.loads(chat.messages)
        estimate = self.estimated_tokens("".join(one["content"] for one in messages))
        content = {"model": self.model, "messages": messages, **parameters}
        if (form := parameters.get("response_format")) is not None:
            content["response_format"] = _response_format(form, chat.letters)
        try:
            answer = self.client.send("chat/completions", content, estimate)
        except RequestRefused as error:
            for name, remedy in (
                ("max_tokens", "Give a --max-tokens that it takes."),
                ("system", "Leave --system out." if messages[0]["role"] == "system" else ""),
            ):
                if remedy and name in error.said:
                    message = f"{error} {remedy}"
                    raise RequestRefused(message, error.status, error.said, error.body) from error
            raise
        usage = answer.get("usage") if isinstance(answer, dict) else None
        self.client.budget.correct((_count(usage, "prompt_tokens") or estimate) - estimate)
        return answer

    def _known_parameters(self, wanted: Wanted, max_tokens: int) -> dict[str, Any] | None:
        about = f"{wanted} {max_tokens}"
        if about not in self._agreed:
            kept = self.store.find("reply", self.digest, "parameters", about)
            if kept is None:
                return None
            self._agreed[about] = kept
        return self._agreed[about]

    def _parameters(self, wanted: Wanted, max_tokens: int) -> dict[str, Any]:
        """Return the parameters that the endpoint takes, after it was asked a short question.

        Raises:
            UsageError: probabilities of letters are wanted, and it gives none.
            ServerError: it refuses a request without saying which parameter is wrong.
        """
        known = self._known_parameters(wanted, max_tokens)
        if known is not None:
            return known
        parameters: dict[str, Any] = {"temperature": 0, "seed": 0, "max_tokens": max_tokens}
        if wanted == "json":
            parameters["response_format"] = "json_schema"
        elif wanted != "text":
            parameters |= {"logprobs": True, "top_logprobs": _TOP}
        while True:
            try:
                answer = self._send(_FIRST, parameters)
                break
            except ServerError as error:
                _leave_out(parameters, error)
        if "logprobs" in parameters and not read_reply(answer, self.url).first:
            del parameters["logprobs"], parameters["top_logprobs"]
        if wanted == "letters" and "logprobs" not in parameters:
            raise UsageError(
                f"{self.url} gives no log-probabilities of the tokens of an answer "
                "(top_logprobs): leave --answers letters out, and its text is read"
            )
        limit = next(name for name in parameters if name.startswith("max_"))
        if "logprobs" in parameters:
            parameters[limit] = 1
        about = f"{wanted} {max_tokens}"
        self.store.add("reply", parameters, self.digest, "parameters", about)
        self._agreed[about] = parameters
        return parameters


def _leave_out(parameters: dict[str, Any], error: ServerError) -> None:
    """Leave out, or change, the parameter that a server refuses by its name.

    Raises:
        ServerError: the error, if it names none.
    """
    said = str(error)
    if "max_completion_tokens" in said and "max_tokens" in parameters:
        parameters["max_completion_tokens"] = parameters.pop("max_tokens")
    elif "top_logprobs" in said and parameters.get("top_logprobs") == _TOP:
        parameters["top_logprobs"] = _FEWER
    elif "logprobs" in said and "logprobs" in parameters:
        del parameters["logprobs"], parameters["top_logprobs"]
    elif "response_format" in said and "response_format" in parameters:
        if parameters["response_format"] == "json_schema":
            parameters["response_format"] = "json_object"
        else:
            del parameters["response_format"]
            logger.warning(
                "The endpoint takes no schema of answers (response_format): their text is read."
            )
    elif refused := [name for name in ("temperature", "seed") if name in said]:
        if refused[0] not in parameters:
            raise error
        del parameters[refused[0]]
        logger.warning("The endpoint does not take %s, which is left out.", refused[0])
    else:
        raise error


def read_reply(answer: Any, url: str) -> ChatReply:
    """Read the answer to a chat.

    Raises:
        ServerError: it is of another form.
    """
    choice, malformed = only_choice(answer, url)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise malformed("its choice has no message")
    text = _joined(message.get("content"))
    if text is None:  # a refusal, or reasoning that was cut
        text = ""
    if not isinstance(text, str):
        raise malformed("the message's content is no text")
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no text to store
    tokens = [_count(answer.get("usage"), name) for name in ("prompt_tokens", "completion_tokens")]
    first = _first_tokens(choice.get("logprobs"), malformed)
    end = choice.get("finish_reason")
    return ChatReply(text, sum(tokens), end == "length", first, end == "content_filter")


def _joined(content: Any) -> Any:
    """Join the parts of an answer that comes as a list of them, without its reasoning."""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    said = [part for part in content if part.get("type") not in _NO_TEXTS]
    texts = [part.get("text") if part.get("type") in _TEXTS else None for part in said]
    return "".join(map(str, texts)) if all(isinstance(text, str) for text in texts) else content


def _count(usage: Any, name: str) -> int:
    """Return a count of tokens; 0 if the server does not state it."""
    count = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_INTEGER:
        return 0
    return count


def _first_tokens(found: Any, malformed: Callable[[str], ServerError]) -> dict[str, float] | None:
    """Return the log-probabilities of the likeliest first tokens; None if not given."""
    if found is None:
        return None
    content = found.get("content") if isinstance(found, dict) else None
    if content is None or content == []:
        return None
    head = content[0] if isinstance(content, list) else None
    top = head.get("top_logprobs") if isinstance(head, dict) else None
    if not isinstance(top, list):
        raise malformed("logprobs.content is no list of tokens with top_logprobs")
    first: dict[str, float] = {}
    for one in top:
        token = one.get("token") if isinstance(one, dict) else None
        value = log_prob_of(one.get("logprob")) if isinstance(token, str) else None
        if value is None or value != value:
            raise malformed("top_logprobs holds a token without a log-probability of at most 0")
        first[str(token)] = value
    return first
