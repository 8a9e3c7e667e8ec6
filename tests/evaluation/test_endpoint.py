"""Models behind an endpoint: the scores of the same model loaded here, asked once."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import processors

import evaluation
from evaluation.cli import main
from evaluation.endpoints import client
from evaluation.endpoints.answers import (
    NoPromptScores,
    Scored,
    TokenPair,
)
from evaluation.endpoints.client import API_KEY, PromptLimits
from evaluation.endpoints.endpoint import Endpoint
from evaluation.endpoints.served import AnswerStore
from evaluation.items.types import Item, choice_starts
from evaluation.results.metrics import Scores
from evaluation.results.types import RESULTS
from evaluation.runs.scoring import score_encoded
from evaluation.scorers.base import Scorer, ScorerInputs
from evaluation.scorers.batching import BackOff
from evaluation.scorers.causal.options import PromptOptions
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.causal.scorer import CausalScorer
from evaluation.scorers.endpoint.scorer import EndpointScorer
from evaluation.scorers.entries import PMI, EndpointPmiOptions
from kbprobe.errors import UsageError
from kbprobe.http import BudgetSpent, ServerError
from tests.evaluation import jsonl_probe, tiny_causal
from tests.evaluation.endpoint_server import Fault, Script, serving

CHOICES = ("a dog", "a domestic animal", "the river", "café ☕")
PATIENT = PromptLimits(backoff=0.001)


def questions(first: int = 0) -> list[Item]:
    """Questions with the same choices in other orders; one ends in a space."""
    return [
        Item(
            f"row-{n}",
            "mc_qa",
            f"The word number {n} is a kind of{' ' * (n == 2)}",
            (*CHOICES[n % 4 :], *CHOICES[: n % 4]),
            n % 4,
        )
        for n in range(first, first + 4)
    ]


CLOZES = [
    Item(f"cloze-{n}", "mc_mlm", text, ("robin", "guin", "dog run"), n)
    for n, text in enumerate(("A [MASK] can fly.", "The pen[MASK] swims.", "It is a [MASK]."))
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two checkpoints and a probe."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("endpoint")
    for name in ("gpt2", "llama"):
        tiny_causal.write(name, folder / name)
    jsonl_probe.write(folder / "probe", {"train": questions(50), "test": questions()})
    return folder


@pytest.fixture(scope="module")
def models(world: Path) -> dict[str, tuple[Any, Any]]:
    return {name: tiny_causal.load(name, world / name) for name in ("gpt2", "llama")}


@pytest.fixture
def server(models: dict[str, tuple[Any, Any]]) -> Iterator[Script]:
    with serving(*models["gpt2"]) as script:
        yield script


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(client, "PromptLimits", partial(PromptLimits, backoff=0.001))


def scored(scorer: Scorer, items: list[Item], budget: int = 4096) -> Scores:
    """Score some items as a run does."""
    encoded, starts = scorer.encode(items), choice_starts(items)
    return score_encoded(scorer, encoded, starts, "", budget, back_off=BackOff())


PROMPTS = {
    "plain": Prompt(),
    "examples": Prompt(PromptOptions(prompt="Q: {question}\nA:", shots=2), questions(50)),
    "letters": Prompt(PromptOptions(letters=True)),
    "clozes": Prompt(),
}


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("gpt2", "vllm"),
        ("llama", "llama-cpp-python"),
        pytest.param("llama", "vllm", marks=pytest.mark.slow),
        pytest.param("gpt2", "llama-cpp-python", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("case", PROMPTS)
def test_scores_equal_those_of_the_model_loaded_here(
    case: str, family: str, kind: str, models: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    items = {"clozes": CLOZES, "letters": questions()[:1]}.get(case, questions())
    prompt = PROMPTS[case]
    here = scored(CausalScorer(*models[family], prompt=prompt), items)
    with serving(*models[family], kind=kind) as server:
        endpoint = Endpoint(server.url, "tiny", tmp_path, PATIENT)
        there = scored(EndpointScorer(endpoint, prompt), items)
    assert np.array_equal(there.tokens, here.tokens)
    assert there.set_aside == here.set_aside == {}
    alike = np.ones(len(here.scores), dtype=bool)
    if case == "clozes":
        # "penguin" is one token, which a text that is sent cannot be made to do without: the same
        # tokens are scored, after others.
        assert there.notes == {"straddled": 1}
        alike[4] = False
    assert there.scores[alike] == pytest.approx(here.scores[alike], abs=1e-4)


@pytest.mark.parametrize("kind", ["vllm", "llama-cpp-python"])
def test_a_token_that_the_server_puts_after_every_text_is_not_scored(
    kind: str, models: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    model, tokenizer = models["llama"]
    here = scored(CausalScorer(model, tokenizer), questions())
    ending = copy.deepcopy(tokenizer)
    ending.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    assert ending("a dog")["input_ids"][-1] == 2
    with serving(model, ending, kind=kind) as server:
        endpoint = Endpoint(server.url, "tiny", tmp_path, PATIENT)
        there = scored(EndpointScorer(endpoint), questions())
    assert np.array_equal(there.tokens, here.tokens)
    assert there.notes == here.notes == {}
    assert there.scores == pytest.approx(here.scores, abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_pmi_equals_that_of_the_model_loaded_here(
    family: str, models: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    here = scored(PMI.make(ScorerInputs(*models[family], PMI.options())), questions())
    with serving(*models[family]) as server:
        endpoint = Endpoint(server.url, "tiny", tmp_path, PATIENT)
        if family == "gpt2":
            with pytest.raises(UsageError, match="--start"):
                scored(
                    EndpointScorer(endpoint, Prompt(EndpointPmiOptions(neutral=""))), questions()
                )
        start = "<|endoftext|>" if family == "gpt2" else ""
        there = scored(
            EndpointScorer(endpoint, Prompt(EndpointPmiOptions(neutral="")), start=start),
            questions(),
        )
        assert len(server.prompts) == len(set(server.prompts)), "neutral ones are sent once"
    assert there.scores == pytest.approx(here.scores, abs=1e-4)


@pytest.mark.slow
def test_the_command_gives_the_results_of_the_model_loaded_here(
    server: Script, world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = evaluation.evaluate(world / "probe", world / "gpt2")
    out = tmp_path / "out"
    words = [str(world / "probe"), "-m", "tiny", "--endpoint", server.url, "-o", str(out)]
    words += ["--dtype", "float32"]
    with pytest.raises(SystemExit) as done:
        main(words)
    assert not done.value.code, capsys.readouterr().err
    there = evaluation.load(out)
    theirs, ours = there.results, here.results
    assert theirs.metrics.accuracies == ours.metrics.accuracies
    assert set(theirs.metrics.accuracies) == {"acc", "acc_norm", "acc_bytes", "acc_tokens"}
    assert there.predictions["prediction"].equals(here.predictions["prediction"])
    assert theirs.scoring.scorer == "endpoint"
    assert theirs.scoring.options["endpoint"] == server.url
    assert (theirs.model.device, theirs.model.architecture) == ("endpoint", "endpoint (vllm)")
    for wrong, said in (
        ([*words[:3], "-o", str(out)], "--endpoint"),
        ([*words[:5], "--scorer", "causal_lm"], "endpoint_pmi"),
        ([*words[:5], "--train", "2"], "--train"),
        ([*words[:5], "--revision", "main"], "--revision is for models that are loaded here"),
        ([*words[:3], "--max-requests", "5"], "--max-requests requires --endpoint URL"),
        ([*words[:1], "-m", str(world / "gpt2"), "--scorer", "endpoint"], "--endpoint http"),
        ([*words[:2], "tinyy", *words[3:5]], "Did you mean 'tiny'?"),
    ):
        with pytest.raises(SystemExit) as done:
            main(wrong)
        shown = capsys.readouterr().err
        assert (done.value.code in (1, 2), said in shown) == (True, True), shown


def test_nothing_is_sent_twice(server: Script, tmp_path: Path) -> None:
    def sent(items: list[Item], prompt: Prompt | None = None) -> list[str]:
        before = len(server.prompts)
        endpoint = Endpoint(server.url, "tiny", tmp_path, PATIENT)
        scored(EndpointScorer(endpoint, prompt), items)
        return server.prompts[before + 1 :]  # the first is the fixed text

    first = sent(questions()[:2])
    more = sent(questions())
    assert len(set(first + more)) == len(first + more)
    assert sent(questions()) == []
    weight = server.model.lm_head.weight.data
    weight.mul_(1.5)
    try:
        assert len(sent(questions())) == len(first + more), "another model under the same name"
    finally:
        weight.div_(1.5)
    assert sent(questions()) == []


def test_requests_go_out_together_up_to_the_number_given(server: Script, tmp_path: Path) -> None:
    server.faults = [None, *[Fault(seconds=0.05)] * 8]
    endpoint = Endpoint(server.url, "tiny", tmp_path, PATIENT, concurrency=3)
    scored(EndpointScorer(endpoint), questions(), budget=1)
    assert server.together == 3, "even where each prompt is a batch"
    assert server.connections <= 1 + 3, "each thread uses its connection again"


@pytest.mark.parametrize(
    "budget", [{"requests": 10}, pytest.param({"prompt_tokens": 140}, marks=pytest.mark.slow)]
)
def test_a_run_stops_at_its_budget_and_goes_on(
    budget: dict[str, int], server: Script, tmp_path: Path
) -> None:
    limits, stops = PromptLimits(**budget), 0  # type: ignore[arg-type]
    while stops < 20:
        before = len(server.prompts)
        endpoint = Endpoint(server.url, "tiny", tmp_path, limits, concurrency=1)
        try:
            scored(EndpointScorer(endpoint), questions())
            break
        except BudgetSpent as error:
            said = str(error)
        stops += 1
        assert "is reached" in said
        assert "run the same command again to go on" in said
        assert len(server.prompts) - before == budget.get("requests", len(server.prompts) - before)
    assert 1 < stops < 20
    own = [prompt for prompt in server.prompts if "word number" in prompt]
    # A context that was counted and whose pair was not yet answered may be sent again.
    assert len(own) - len(set(own)) <= stops


def test_a_damaged_answer_is_asked_again(tmp_path: Path) -> None:
    """A flipped bit is neither another score nor the end of all answers."""
    pair, scored_, tokens = TokenPair("A dog", " barks"), Scored(-12.375, 2, 5), ["A", " dog"]

    def opened() -> AnswerStore:
        return AnswerStore("http://localhost:1/v1", "tiny", tmp_path)

    store = opened()
    store.add_model("0f", tokens, [-0.8125])
    store.add("answer", scored_, "0f", *pair)
    store.add("context", tokens, "0f", pair.context)
    assert store.find("answer", "0f", *pair) == list(scored_)
    assert store.find("context", "0f", "A dog") == tokens
    assert store.models() == [("0f", tokens, [-0.8125])]
    assert store.find("answer", "0e", *pair) is None
    store.close()
    (file,) = tmp_path.rglob("answers.sqlite")
    whole = file.read_bytes()
    texts = (b"-12.375", b"-12.374"), (b"-0.8125", b"-0.8124"), (b' dog"', b' do\xe7"')
    for there, flipped in texts:
        assert whole.count(there) >= 1
        file.write_bytes(whole.replace(there, flipped))
        store = opened()
        found = (
            store.find("answer", "0f", *pair),
            store.models(),
            store.find("context", "0f", "A dog"),
        )
        assert [bool(one) for one in found].count(False) == (2 if there == b' dog"' else 1)
        store.add_model("0f", tokens, [-0.8125])
        store.add("answer", scored_, "0f", *pair)
        store.add("context", tokens, "0f", pair.context)
        assert store.find("answer", "0f", *pair) == list(scored_)
        assert store.models()[0][2] == [-0.8125]
        store.close()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, {"Retry-After": "0"}),
        pytest.param(Fault(429, {"Retry-After": "1"}), marks=pytest.mark.slow),
        Fault(500, body=b"oops"),
        Fault(503, body=b'{"error": {"message": "loading"}}'),
        Fault(200, body=b'{"choices": [{"te'),
        Fault(cut=40),
    ],
)
def test_what_passes_is_asked_again(fault: Fault, server: Script, tmp_path: Path) -> None:
    want = scored(EndpointScorer(Endpoint(server.url, "tiny", tmp_path / "1")), questions()[:1])
    server.faults, before = [None, fault], len(server.prompts)
    began = time.monotonic()
    found = scored(
        EndpointScorer(Endpoint(server.url, "tiny", tmp_path / "2", PATIENT)), questions()[:1]
    )
    assert np.array_equal(found.scores, want.scores)
    assert len(server.prompts) - before == before + 1
    if fault.headers.get("Retry-After") == "1":
        assert time.monotonic() - began >= 1


def change(**changes: Any) -> Any:
    """Return what changes the only choice of an answer."""

    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "choices": [{**answer["choices"][0], **changes}]}

    return changed


def with_log_prob(position: int, value: int | None) -> Any:
    def changed(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["logprobs"]["token_logprobs"][position] = value
        return answer

    return changed


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"change": lambda answer: []}, "a list of choices"),
        ({"change": lambda answer: {"choices": answer["choices"] * 2}}, "2 choices"),
        ({"change": lambda answer: {"choices": []}}, "0 choices"),
        ({"change": change(logprobs=None)}, "no log-probabilities of prompts"),
        ({"change": change(logprobs={"tokens": ["a"], "token_logprobs": []})}, "as long as"),
        ({"change": change(text=" and so on")}, "it may have cut it"),
        ({"change": with_log_prob(-3, None)}, "leaves out those of some tokens"),
        ({"change": with_log_prob(-3, -(10**400))}, "beyond 64 bits"),
        ({"kind": "llama.cpp"}, "name the .gguf file itself"),
        ({"kind": "openai"}, "'echo' and 'logprobs' at the same time"),
        ({"faults": [Fault(302, {"Location": "http://elsewhere.example/v1"})]}, "not followed"),
        ({"faults": [Fault(401, body=b"key sk-secret is wrong")]}, API_KEY),
        ({"faults": [Fault(500)] * 3}, "attempt 3 of as many"),
        ({"faults": [Fault(429, {"Retry-After": "4000"})]}, "asks to wait 4000 s"),
        ({"faults": [Fault(seconds=0.3)] * 3}, "no whole answer within 0.2 s"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(
    broken: dict[str, Any],
    said: str,
    models: dict[str, tuple[Any, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(API_KEY, "sk-secret")
    limits = PromptLimits(backoff=0.001, attempts=3, timeout=0.2)
    with serving(*models["gpt2"], **broken) as server:
        with pytest.raises(ServerError) as error:
            Endpoint(server.url, "tiny", tmp_path, limits)
        assert said in str(error.value)
        assert "sk-secret" not in str(error.value)
    assert isinstance(error.value, NoPromptScores) == ("no log-probabilities" in str(error.value))


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://me:secret@host/v1",
        "me:secret@host/v1",
        "http://me:secret#@host:x/v1?y",
    ],
)
def test_an_address_must_be_one(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        Endpoint(url, "tiny", tmp_path)
    assert "secret" not in str(error.value)


def test_a_prompt_that_is_too_long_is_set_aside(server: Script, tmp_path: Path) -> None:
    items = [*questions(), Item("long", "mc_qa", "dog " * 200, CHOICES, 0)]
    found = scored(EndpointScorer(Endpoint(server.url, "tiny", tmp_path)), items)
    assert list(found.set_aside) == [4]
    assert found.set_aside[4].startswith("a prompt longer than the endpoint takes")
    assert np.isnan(found.scores[-len(CHOICES) :]).all()
    assert np.isfinite(found.scores[: -len(CHOICES)]).all()


@pytest.mark.slow
@pytest.mark.posix
def test_a_run_that_was_killed_goes_on(server: Script, world: Path, tmp_path: Path) -> None:
    server.faults = [*[None] * 11, *[Fault(seconds=30.0)] * 8]
    command = [sys.executable, "-m", "evaluation.cli", str(world / "probe"), "-m", "tiny"]
    command += ["--endpoint", server.url, "--concurrency", "2", "-o", str(tmp_path / "out")]
    environment = {**os.environ, API_KEY: "sk-secret-key"}
    started = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    while len(server.prompts) < 13 and started.poll() is None:
        time.sleep(0.02)
    time.sleep(0.5)  # what was answered is being stored
    started.send_signal(signal.SIGKILL)
    started.communicate()
    answered, before = server.prompts[1:11], len(server.prompts)
    server.faults = []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    again = server.prompts[before + 1 :]
    assert len(again) == len(set(again))
    # Two were under way; what they belong to may have been answered in part.
    assert len(set(again) & set(answered)) <= 2
    assert all(one["Authorization"] == "Bearer sk-secret-key" for one in server.headers)
    kept = [path for root in (tmp_path, world) for path in root.rglob("*") if path.is_file()]
    assert any(path.name == RESULTS for path in kept)
    assert not any(b"sk-secret-key" in path.read_bytes() for path in kept)
    assert "sk-secret-key" not in done.stdout + done.stderr
    assert "were answered before" in done.stderr
