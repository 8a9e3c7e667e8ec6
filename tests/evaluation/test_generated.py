"""Written answers: read strictly, of endpoints that behave or not, and of models loaded here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from tokenizers import AddedToken

import evaluation
from evaluation.cli import main
from evaluation.endpoints import client
from evaluation.endpoints.chat import Chat, ChatEndpoint, ChatReply
from evaluation.endpoints.client import API_KEY, PromptLimits
from evaluation.exports.command import export_command
from evaluation.items.types import Item
from evaluation.results.analyses.generated import Generated, generated_of
from evaluation.results.summary import cautions
from evaluation.runs.costs import forecast
from evaluation.runs.evaluation import Evaluation
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.entries import GENERATE
from evaluation.scorers.generated.scorer import PromptedQuestion, letter_shares, read_choice
from kbprobe.errors import UsageError
from kbprobe.format.setups import MASK
from kbprobe.http import BudgetSpent, ServerError
from tests.evaluation import jsonl_probe, tiny_architectures, tiny_causal
from tests.evaluation.endpoint_server import Fault, Script, serving
from tests.evaluation.tiny_architectures import make

CHOICES = ("a dog", "a river", "a city")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("B", 1),
        ("b", 1),
        (" (B) ", 1),
        ("**B**", 1),
        ("B. a river", 1),
        ("B) A River.", 1),
        ("(B) a river\n\nIt flows.", 1),
        ("B.\nBecause it flows.", 1),
        ("A river", 1),
        ("“a river”", 1),
        ("Answer: B", 1),
        ("The answer is B.", 1),
        ("The answer is: **B**", 1),
        ("the correct answer is a river", 1),
        ("Answer: option B", 1),
        ("The answer is A because dogs bark", 0),
        ("First A. seems right. The answer is A. No: the answer is B.", 1),
        ("$\\boxed{B}$", 1),
        ("\\boxed{A}, or rather \\boxed{\\text{B}}", 1),
        ("<think>A. a dog? The answer is A.</think>\n\nB", 1),
        ("<think>The answer is B.", None),
        ("Let me see. At first the answer is A. No.\n</think>\n\nB", 1),
        ("<think>A</think>The answer is A.<think>Or B? The answer is B", None),
        ("<Thinking>The answer is A.</Thinking>(B)", 1),
        ("<reasoning>The answer is A.</reasoning>\nB", 1),
        ("[THINK]The answer is A.[/THINK]B", 1),
        ("<|START_THINKING|>A<|END_THINKING|><|START_RESPONSE|>B<|END_RESPONSE|>", 1),
        ("<|START_THINKING|>The answer is B", None),
        (
            "<|channel|>analysis<|message|>The answer is A.<|end|><|start|>assistant"
            "<|channel|>final<|message|>B<|return|>",
            1,
        ),
        ('<|channel|>final <|constrain|>json<|message|>{"answer": "B"}', 1),
        ("<|channel|>analysis<|message|>The answer is B.", None),
        ("<|channel|>analysis<|message|>B<|end|><|channel|>final", None),
        ("analysisThe answer is A.assistantfinalB", 1),
        ("analysisWe need to answer. The answer is B", None),
        ("finalB", 1),
        ("", None),
        ("D", None),
        ("The answer is D.", None),
        ("The answer is a dog or a river", None),
        ("A dog", 0),
        ("A dog barks", None),
        ("A. a dog\nB. a river\nC. a city", None),
        ("A. a river", None),
        ("I cannot tell.", None),
        ("It is a river.", None),
        ("A or B", None),
        ("Best", None),
        ("\\boxed{42}", None),
        ('{"answer": "B"}', 1),
        ('<think>A?</think>{"answer": "B"}', 1),
        ('{"answer": "D"}', None),
        ('{"answer": ["B"]}', None),
        ('{"answer": "B", "other": "A"}', None),
        ("[" * 5000, None),
        ('```json\n{"answer": "b"}\n```\n', 1),
        ('```\n{"answer": "D"}\n```', None),
        ("```" + "\n" * 5000, None),
    ],
)
def test_an_answer_is_read_strictly(text: str, place: int | None) -> None:
    assert read_choice(text, CHOICES) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Let me see. At first the answer is A, since a dog", None),
        ("The correct answer is B. The other answer is A, which", 1),
        ("B. a river\nBecause it", 1),
        ("Dogs bark. So it is \\boxed{B}. Here the", 1),
    ],
)
def test_what_a_cut_answer_does_not_begin_with_is_not_read(text: str, place: int | None) -> None:
    assert read_choice(text, CHOICES, cut=True) == place


def test_choices_of_one_text_are_not_told_apart_by_it() -> None:
    assert read_choice("a dog", ("a dog", "a dog")) is None
    assert letter_shares({"A": math.log(0.5), " A": math.log(0.25), "Because": -1.0}, 2) == [
        pytest.approx(0.75),
        0.0,
    ]


def questions(count: int = 6) -> list[Item]:
    """Questions whose gold is always a river, at each place in turn; the last is a cloze."""
    own = [
        Item(
            f"row-{n}",
            "mc_qa",
            f"Where does water number {n} flow?",
            (*CHOICES[n % 3 :], *CHOICES[: n % 3]),
            (1 - n) % 3,
        )
        for n in range(count - 1)
    ]
    return [*own, Item("cloze", "mc_mlm", f"Water flows in {MASK}.", CHOICES, 1)]


def letter_of(asked: dict[str, Any], text: str) -> str:
    """Return the letter of a choice in the last message of a chat."""
    lines = asked["messages"][-1]["content"].splitlines()
    return next((line[0] for line in lines if line[1:] == f". {text}"), "A")


def knows(asked: dict[str, Any]) -> str:
    return f"The answer is {letter_of(asked, 'a river')}."


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(client, "PromptLimits", partial(PromptLimits, backoff=0.001))


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("chat") / "probe"
    jsonl_probe.write(folder, {"train": questions(3), "test": questions()})
    return folder


@pytest.fixture
def server() -> Iterator[Script]:
    with serving(None, None, kind="vllm", write=knows) as script:
        yield script


def evaluated(probe: Path, server: Script, **options: Any) -> tuple[Evaluation, Generated]:
    done = evaluation.evaluate(probe, "tiny", endpoint=server.url, chat=True, **options)
    block = generated_of(done.results)
    assert block is not None
    return done, block


def test_answers_that_are_right_in_every_order(probe: Path, server: Script) -> None:
    done, block = evaluated(probe, server, system="Be brief.")
    assert done.results.metrics.accuracy.value == block.accuracy.value == 1
    assert (block.answers, block.unread, block.read_by) == (18, 0, "text")
    assert block.flipped is not None
    assert block.flipped.value == 0
    assert [row.chosen.value for row in block.letters] == [pytest.approx(1 / 3)] * 3
    assert done.results.scoring.score == "log of the share of written answers"
    sent = server.asked[-1]
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (sent["temperature"], sent["max_tokens"], "logprobs" in sent) == (0, 256, False)
    cloze = [text for text in server.prompts if "Water flows in ____." in text]
    assert len(cloze) == 3
    assert len(server.prompts) == len(set(server.prompts)) == 19
    row = done.predictions.to_pylist()[1]
    assert row["answer_order"] == ["ABC", "BCA", "CAB"]
    assert row["answer_choice"] == [0, 0, 0]
    assert row["answer_text"][0] == "The answer is A."
    before = len(server.prompts)
    again, _ = evaluated(probe, server, system="Be brief.", cache=True)
    assert again.predictions.equals(done.predictions)
    assert len(server.prompts) == before, "scores are cached, with the answers"


def exported(results: Path, place: Path) -> list[dict[str, Any]]:
    done = CliRunner().invoke(export_command, [str(results), "--to", "inspect", "-o", str(place)])
    assert done.exit_code == 0, done.output
    return [json.loads(Path(line).read_text()) for line in done.output.splitlines()]


def test_inspect_gets_the_conversations(probe: Path, server: Script, tmp_path: Path) -> None:
    server.write = lambda asked: "B" if "number 1 " not in asked["messages"][-1]["content"] else "?"
    place = tmp_path / "results"
    _, block = evaluated(probe, server, system="Be brief.", output=place / "written")
    evaluation.evaluate(probe, "none", scorer="random", output=place / "guessed")
    (log,) = exported(place, tmp_path / "logs")
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == block.accuracy.value
    assert len(log["samples"]) == 18
    for sample in log["samples"]:
        system, user, said = sample["messages"]
        letters = [line[0] for line in user["content"].splitlines() if ". a river" in line]
        assert (system["content"], said["content"]) in {("Be brief.", "B"), ("Be brief.", "?")}
        assert [sample["target"]] == letters
        assert sample["choices"]["ABC".index(sample["target"])] == "a river"
        value = "N" if said["content"] == "?" else "C" if letters == ["B"] else "I"
        found = sample["scores"]["choice"]
        assert (found["value"], found["answer"]) == (value, None if value == "N" else "B")
    with pytest.raises(UsageError, match="none of these results has written answers"):
        CliRunner().invoke(
            export_command,
            [str(place / "guessed"), "--to", "inspect"],
            standalone_mode=False,
            catch_exceptions=False,
        )


def test_inspect_itself_reads_the_logs(probe: Path, server: Script, tmp_path: Path) -> None:
    logs = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    evaluated(probe, server, output=tmp_path / "results")
    exported(tmp_path / "results", tmp_path / "logs")
    (info,) = logs.list_eval_logs(str(tmp_path / "logs"))
    log = logs.read_eval_log(info)
    assert (log.status, log.eval.model, log.eval.config.epochs) == ("success", "tiny", 3)
    assert log.results.scores[0].metrics["accuracy"].value == 1
    assert {(one.epoch, one.scores["choice"].value) for one in log.samples} == {
        (epoch, "C") for epoch in (1, 2, 3)
    }
    assert log.samples[0].messages[-1].text.startswith("The answer is")


def test_a_server_may_fail_to_list_its_models(probe: Path) -> None:
    with serving(None, None, kind="transformers", write=knows) as server:
        done, block = evaluated(probe, server, orders=1)
    assert (block.answers, done.results.model.architecture) == (6, "endpoint")


@pytest.mark.slow
def test_comparisons_with_scores_that_were_not_written_are_marked(
    probe: Path, server: Script
) -> None:
    written, _ = evaluated(probe, server, orders=1)
    guessed = evaluation.evaluate(probe, "none", scorer="random")
    marked, same = (
        [note for note in evaluation.compare(*pair).notes if "generated answers" in note]
        for pair in ((written, guessed), (guessed, guessed))
    )
    assert "generated answers, or by letters, in tiny" in marked[0]
    assert same == []


def test_a_model_that_only_writes_one_letter(probe: Path, server: Script) -> None:
    server.write = lambda asked: "A"
    done, block = evaluated(probe, server)
    assert block.accuracy.value == pytest.approx(1 / 3)
    assert block.flipped is not None
    assert block.flipped.value == 1
    assert [row.chosen.value for row in block.letters] == [1, 0, 0]
    assert (done.results.metrics.ties, done.results.metrics.tie_tolerance) == (6, 0)
    assert "6 ties (top two equal)" in "\n".join(cautions(done.results))
    assert done.results.metrics.ties_wrong == 0
    _, one = evaluated(probe, server, orders=1)
    assert (one.answers, one.flipped) == (6, None)


def test_what_cannot_be_read_is_counted_and_never_guessed(probe: Path, server: Script) -> None:
    def write(asked: dict[str, Any]) -> str:
        return "I am not sure." if "number 1 " in asked["messages"][-1]["content"] else knows(asked)

    server.write = write
    done, block = evaluated(probe, server)
    assert (block.answers, block.unread, block.cut) == (18, 3, 0)
    assert block.accuracy.value == pytest.approx(15 / 18)
    assert done.results.metrics.set_aside == {"no answer names one choice": 1}
    assert done.predictions["prediction"].to_pylist()[1] is None
    server.write = lambda asked: "Perhaps."
    with pytest.raises(UsageError, match="no answer names one choice"):
        evaluated(probe, server, max_tokens=9)


def test_probabilities_of_letters_are_used_where_they_are_given(
    probe: Path, server: Script
) -> None:
    def top(asked: dict[str, Any]) -> dict[str, float]:
        right = letter_of(asked, "a river")
        others = {name: math.log(0.1) for name in "ABC" if name != right}
        return {right: math.log(0.4), f" {right}": math.log(0.2), **others, "The": math.log(0.2)}

    server.top = top
    done, block = evaluated(probe, server)
    assert (block.read_by, block.mass) == ("probability", pytest.approx(0.8))
    assert done.results.metrics.accuracy.value == 1
    assert done.predictions["probability"].to_pylist() == [pytest.approx(0.75)] * 6
    sent = server.asked[-1]
    assert (sent["max_tokens"], sent["top_logprobs"]) == (1, 20)
    _, read = evaluated(probe, server, answers="text")
    assert read.read_by == "text"


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        (("top_logprobs",), {"temperature", "seed", "max_tokens"}),
        (("seed", "temperature"), {"max_tokens"}),
        (("max_tokens",), None),
    ],
)
def test_what_a_server_does_not_take_is_left_out(
    refused: tuple[str, ...], left: set[str] | None, probe: Path, server: Script
) -> None:
    server.refused = refused
    if left is None:
        with pytest.raises(ServerError, match="max_tokens"):
            evaluated(probe, server)
        return
    evaluated(probe, server)
    assert server.asked[-1].keys() - {"model", "messages"} == left
    if refused == ("top_logprobs",):
        with pytest.raises(UsageError, match="--answers letters"):
            evaluated(probe, server, answers="letters")


@pytest.mark.parametrize(
    ("takes", "unstructured"),
    [({"json_schema", "json_object"}, 0), ({"json_object"}, 0), (set(), 18)],
)
def test_a_schema_admits_the_letters_alone_where_the_server_takes_one(
    takes: set[str], unstructured: int, probe: Path, server: Script
) -> None:
    def write(asked: dict[str, Any]) -> str:
        if (form := asked.get("response_format")) is None:
            return knows(asked)
        schema = form["json_schema"]["schema"] if form["type"] == "json_schema" else form["schema"]
        letters = schema["properties"]["answer"]["enum"]
        shown = asked["messages"][-1]["content"].splitlines()
        assert letters == [line[0] for line in shown if line[1:3] == ". "]
        return json.dumps({"answer": letter_of(asked, "a river")})

    server.write, server.formats = write, takes
    done, block = evaluated(probe, server, answers="json")
    assert (block.read_by, block.unread, block.accuracy.value) == ("text", 0, 1)
    assert done.results.scoring.notes == ({"unstructured": 18} if unstructured else {})
    assert "logprobs" not in server.asked[-1]


def with_message(**changes: Any) -> Any:
    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        choice = answer["choices"][0]
        return {**answer, "choices": [{**choice, **changes}]}

    return changed


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"change": lambda answer: []}, "a list of choices"),
        ({"change": lambda answer: {"choices": answer["choices"] * 2}}, "2 choices"),
        ({"change": with_message(message="B")}, "its choice has no message"),
        ({"change": with_message(message={"content": ["B"]})}, "content is no text"),
        ({"change": with_message(logprobs={"content": [7]})}, "no list of tokens"),
        ({"change": with_message(logprobs={"content": {"token": 7}})}, "no list of tokens"),
        (
            {"change": with_message(logprobs={"content": [{"top_logprobs": [{"token": "B"}]}]})},
            "without a log-probability",
        ),
        ({"faults": [Fault(302, {"Location": "http://elsewhere.example/v1"})]}, "not followed"),
        ({"faults": [Fault(401, body=b"key sk-secret is wrong")]}, API_KEY),
        ({"faults": [Fault(200, body=b"<html>Sign in</html>")] * 3}, "no valid JSON"),
        ({"faults": [Fault(200, body=b'{"error": {"message": "No GPU"}}')] * 3}, "error: No GPU"),
        ({"faults": [Fault(200, body=b"[" + b" " * 5000)]}, "more than 4,000 bytes"),
        ({"faults": [Fault(cut=40)] * 3}, "attempt 3 of as many"),
        ({"faults": [Fault(429, {"Retry-After": "4000"})]}, "asks to wait 4000 s"),
    ],
)
def test_answers_of_another_form_are_refused_with_the_reason(
    broken: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_KEY, "sk-secret")
    limits = PromptLimits(backoff=0.001, attempts=3, max_bytes=4000)
    with serving(None, None, write=lambda asked: "B", **broken) as server:
        endpoint = ChatEndpoint(server.url, "tiny", tmp_path, limits)
        chat = Chat(json.dumps([{"role": "user", "content": "A or B?"}]), letters=2)
        with pytest.raises(ServerError) as error:
            list(endpoint.replies([chat], "auto", 8))
    assert said in str(error.value)
    assert "sk-secret" not in str(error.value)


def refuses(limit: int) -> Any:
    """Return what refuses longer answers in words that are also used of prompts."""
    said = f"max_tokens is too large: this model supports at most {limit} completion tokens"
    return lambda asked: (400, {"message": said}) if asked["max_tokens"] > limit else None


def test_a_refusal_that_is_not_of_the_prompt_ends_the_run_in_the_servers_words(
    probe: Path, server: Script
) -> None:
    server.write, server.refuse = knows, refuses(100)
    with pytest.raises(ServerError, match=r"at most 100 completion tokens\. Give a --max-tokens"):
        evaluated(probe, server)
    assert len(server.prompts) == 1
    _, block = evaluated(probe, server, max_tokens=100)
    assert (block.unread, block.cut) == (0, 0)
    for said in ("You exceeded your quota", "at most 50 tokens exceeded"):  # since the trial
        server.refuse = lambda asked, said=said: (400, said)  # type: ignore[misc]
        with pytest.raises(ServerError, match=said):
            evaluated(probe, server, max_tokens=100, orders=1, system="Be brief.")
    server.refuse = lambda asked: (400, "no system role") if len(asked["messages"]) > 1 else None
    with pytest.raises(ServerError, match=r"no system role\. Leave --system out"):
        evaluated(probe, server, max_tokens=100, system="Be brief.")


def test_prompts_that_are_refused_are_counted_and_the_others_asked(
    probe: Path, server: Script
) -> None:
    def refuse(asked: dict[str, Any]) -> tuple[int, Any] | None:
        last = asked["messages"][-1]["content"]
        if "number 0" in last:
            return 400, {"message": "The response was filtered.", "code": "content_filter"}
        return (400, "Your prompt exceeds the context") if "number 1" in last else None

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        if "number 2" in server.prompts[-1]:
            message = {"role": "assistant", "content": None}
            answer["choices"][0] |= {"message": message, "finish_reason": "content_filter"}
        return answer

    server.write, server.refuse, server.change = knows, refuse, change
    done, block = evaluated(probe, server, concurrency=1)
    assert (block.answers, block.unread, block.cut) == (18, 9, 3)
    assert done.results.scoring.notes == {"filtered": 6}
    sent = len(server.prompts)
    evaluated(probe, server, concurrency=1, limit=5)
    assert len(server.prompts) == sent, "refusals are stored"


def test_refusals_that_were_stored_as_empty_answers_are_asked_again(tmp_path: Path) -> None:
    with serving(None, None, write=lambda asked: "B") as server:
        endpoint = ChatEndpoint(server.url, "tiny", tmp_path)
        chat = Chat(json.dumps([{"role": "user", "content": "A or B?"}]), letters=2)
        list(endpoint.replies([chat], "text", 8))
        request = endpoint._request(chat, endpoint._parameters("text", 8))
        endpoint.store.add("reply", ["", 0, True, None], *request)
        assert endpoint.known(chat, "text", 8) is None
        endpoint.store.add("reply", ["B", 21, False, None], *request)
        assert endpoint.known(chat, "text", 8) == ChatReply("B", 21, False)


def test_an_answer_in_parts_is_joined_without_its_reasoning(probe: Path, server: Script) -> None:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        text = answer["choices"][0]["message"]["content"]
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "A? B? C?"}]}
        parts = [thought, {"type": "text", "text": text[:5]}, {"type": "text", "text": text[5:]}]
        answer["choices"][0]["message"]["content"] = parts
        return answer

    server.write, server.change = knows, change
    _, block = evaluated(probe, server)
    assert (block.unread, block.accuracy.value) == (0, 1)


def test_a_key_that_a_server_repeats_with_escapes_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_KEY, "sk-secret-key/1")
    hidden = "".join(f"\\u{ord(letter):04x}" for letter in "sk-secret-key/1")
    body = f'{{"choices": [{{"message": {{"content": "B {hidden} sk-secret-key\\/1"}}}}]}}'
    refusal = f'{{"detail": [{{"msg": "{hidden}"}}], "code": "{hidden}"}}'
    with serving(None, None, faults=[Fault(200, body=body.encode())] * 2) as server:
        endpoint = ChatEndpoint(server.url, "tiny", tmp_path)
        chat = Chat(json.dumps([{"role": "user", "content": "A or B?"}]), letters=2)
        ((_, reply),) = endpoint.replies([chat], "text", 8)
        assert reply.text == "B [key] [key]"
        server.faults = [Fault(400, body=refusal.encode())]
        with pytest.raises(ServerError) as error:
            list(endpoint.replies([chat], "text", 8))
    assert "secret" not in str(error.value)
    assert "[key]" in str(error.value)


def test_a_key_that_a_server_repeats_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_KEY, "sk-secret-key")
    with serving(None, None, write=lambda asked: "Bearer sk-secret-key. Answer: B") as server:
        endpoint = ChatEndpoint(server.url, "tiny", tmp_path)
        chat = Chat(json.dumps([{"role": "user", "content": "A or B?"}]), letters=2)
        (reply,) = endpoint.replies([chat], "text", 8)
        assert "Bearer [key]. Answer: B" in str(reply)
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert held
    assert not any(b"sk-secret" in path.read_bytes() for path in held)


@pytest.mark.parametrize("key", ["sk-secret\nsk-other", "sk-“secret”"])
def test_what_cannot_be_a_key_is_refused_without_it(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_KEY, key)
    with pytest.raises(UsageError, match=f"{API_KEY} holds what cannot be a key") as error:
        ChatEndpoint("http://localhost:9/v1", "tiny", tmp_path)
    assert "secret" not in str(error.value)


def test_no_content_and_odd_counts_are_no_answers(probe: Path, server: Script) -> None:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        answer["usage"] = {"prompt_tokens": "many", "completion_tokens": -(10**400)}
        answer["choices"][0] |= {"message": {"content": None}, "finish_reason": "length"}
        return answer

    server.write = knows
    server.change = lambda answer: change(answer) if len(server.prompts) % 5 == 0 else answer
    _, block = evaluated(probe, server)
    assert 0 < block.unread == block.cut < block.answers


def test_half_a_surrogate_pair_is_shown_as_a_question_mark(probe: Path, server: Script) -> None:
    server.write = lambda asked: f"\ud800 {knows(asked)}"
    results, _ = evaluated(probe, server)
    assert results.predictions["answer_text"].to_pylist()[0][0].startswith("? ")


def test_a_run_stops_at_its_budget_goes_on_and_can_be_forecast(
    probe: Path,
    server: Script,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    nowhere = "http://127.0.0.1:9/v1"
    for chat in ("--chat", "--no-chat"):
        words = [str(probe), "-m", "tiny", "--endpoint", nowhere, chat, "--dry-run"]
        with pytest.raises(SystemExit) as done:
            main([*words, "-o", str(tmp_path / "out")])
        assert done.value.code == 0
        assert "prompts to send" in caplog.text
        assert "nothing was evaluated" in capsys.readouterr().err
        caplog.clear()
    spec = RunSpec.parse(str(probe), "tiny", {"endpoint": server.url, "chat": True})
    found = forecast([spec])
    assert (found.costs[0].rows, found.totals["unknown"]) == (6, 1)
    assert server.prompts == []
    assert not (tmp_path / "out").exists()
    with pytest.raises(BudgetSpent, match="run the same command again to go on"):
        evaluated(probe, server, max_requests=7, concurrency=2)
    assert len(server.prompts) == 7
    server.faults = [Fault(429, {"Retry-After": "0"}), Fault(500), Fault(200, body=b"<html>")]
    _, block = evaluated(probe, server)
    assert (block.answers, block.unread) == (18, 0)
    assert len(server.prompts) == 1 + 18 + 3
    for wrong, said in (({"scorer": "endpoint"}, "without --chat"), ({"train": 2}, "--train")):
        with pytest.raises(UsageError, match=said):
            evaluated(probe, server, **wrong)


@pytest.mark.parametrize("name", ["gpt2", "rwkv", "roberta"])
def test_answers_written_here_are_those_of_greedy_decoding_alone_or_together(name: str) -> None:
    roberta = name == "roberta"
    model, tokenizer = tiny_architectures.roberta_decoder() if roberta else make(name)
    scorer: Any = GENERATE.make(ScorerInputs(model, tokenizer, GENERATE.options(max_tokens=4)))
    prompts = [
        "Where does water flow?\nAnswer:",
        "Where does rain flow?\nAnswer:",
        "Water:",
        "A\nB. a river\nC. a city\nAnswer:",
    ]
    asked = [PromptedQuestion(prompt, "", ()) for prompt in prompts]
    for prompt, one, reply in zip(prompts, asked, scorer.replies(asked), strict=True):
        assert scorer.replies([one]) == [reply]
        read = tokenizer(prompt, return_tensors="pt")["input_ids"]
        ids, new = (read[:, :-1] if roberta else read), list[int]()  # without </s>
        for _ in range(4):
            with torch.no_grad():
                token = int(model(ids, use_cache=False).logits[0, -1].argmax())
            if token == tokenizer.eos_token_id:
                break
            ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
            new.append(token)
        text = tokenizer.decode(new, skip_special_tokens=True)
        assert reply.text == text.partition("\n")[0]
    if not roberta:  # whose tokenizer here has no decoder of bytes
        marker = AddedToken("[/THINK]", special=True)
        tokenizer.add_special_tokens({"additional_special_tokens": [marker, "<|note|>"]})
        scorer = GENERATE.make(ScorerInputs(model, tokenizer, GENERATE.options(max_tokens=4)))
        ids = tokenizer("The answer is A<|note|>[/THINK]B<|note|><|endoftext|>")["input_ids"]
        assert scorer._text(ids) == "The answer is A[/THINK]B"
    long = PromptedQuestion("water " * 4000, "", ())
    length = len(tokenizer(long.prompt)["input_ids"]) - roberta
    assert scorer.replies([long]) == [ChatReply("", length, True)]


def test_reasoning_that_the_template_opens_is_not_read_where_it_does_not_end(
    tmp_path: Path,
) -> None:
    model, tokenizer = tiny_causal.load("gpt2", tiny_causal.write("gpt2", tmp_path / "gpt2"))
    tokenizer.chat_template = tiny_causal.CHAT_TEMPLATE
    options = GENERATE.options(max_tokens=4, chat=True)
    scorer: Any = GENERATE.make(ScorerInputs(model, tokenizer, options))
    (reply,) = scorer.replies([PromptedQuestion("<user>Fly?\n<assistant>\n<think>\n", "", ())])
    assert (reply.text[:8], read_choice(reply.text, CHOICES)) == ("<think>\n", None)
