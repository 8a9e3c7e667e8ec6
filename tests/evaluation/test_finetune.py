"""Fine-tuning: it learns, a seed decides all of it, memory changes nothing, and it can be kept."""

import json
import logging

import numpy as np
import pytest
import torch
import transformers
from pydantic import ValidationError

from evaluation.cli import main
from evaluation.items.sampling import draw_items
from evaluation.items.types import Item, choice_starts
from evaluation.learners.base import rate_share, slanted_triangle
from evaluation.learners.entries import RECORD, FinetuneOptions
from evaluation.learners.finetune import training as finetuning
from evaluation.learners.finetune.kept import _holds, keep
from evaluation.learners.finetune.training import Course, finetune
from evaluation.models.loading import fresh_parameters
from evaluation.options import parse_options
from evaluation.scorers.multiple_choice import MultipleChoiceScorer
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_multiple_choice as tiny

torch.set_num_threads(1)
logging.getLogger("transformers").setLevel(logging.ERROR)

CHOICES = ("a dog", "a cat", "a mouse", "a bus", "a truck", "a house", "a toy", "a piano")


def learnable_rows(count, seed=0, width=4):
    """Rows whose gold is the one choice that is a vehicle."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        gold = CHOICES[3 + number % 2]
        wrong = [choice for choice in CHOICES if choice not in ("a bus", "a truck")]
        shown = list(random.choice(wrong, size=width - 1 - number % 2, replace=False))
        answer = int(random.integers(len(shown) + 1))
        shown.insert(answer, gold)
        question = f"What is a vehicle? {'Really. ' * (number % 5)}"
        rows.append(Item(f"row-{seed}-{number}", "mc_qa", question, tuple(map(str, shown)), answer))
    return rows


TRAIN = learnable_rows(60)
TEST = learnable_rows(60, seed=1)
QUICK = FinetuneOptions(training={"train_batch": 8}, epochs=1, learning_rate=1e-3)


def scores(model, tokenizer, items):
    scorer = MultipleChoiceScorer(model, tokenizer)
    encoded = scorer.encode(items)
    found = np.empty(len(encoded.slot_choice))
    found[encoded.slot_choice] = scorer.score(encoded, np.arange(len(encoded.lengths)))
    return found


def accuracy(model, tokenizer, items):
    rows = np.split(scores(model, tokenizer, items), choice_starts(items)[1:-1])
    return np.mean([row.argmax() == item.answer for row, item in zip(rows, items, strict=True)])


def drawn(items=TRAIN, count=24, seed=0):
    return [items[row] for row in draw_items(items, count, seed)]


def trained(
    options=QUICK,
    family="Bert",
    items=TRAIN,
    fresh=("classifier.weight",),
    count=24,
    seed=0,
    **changes,
):
    model, tokenizer = tiny.make(family, **changes), tiny.make_tokenizer(family)
    report = finetune(model, tokenizer, drawn(items, count, seed), options, seed, fresh=fresh)
    return model, tokenizer, report


def weights(model):
    return b"".join(value.numpy().tobytes() for value in model.state_dict().values())


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_it_learns_what_can_be_learnt(family):
    options = FinetuneOptions(training={"train_batch": 8}, epochs=10, learning_rate=2e-3)
    before = accuracy(tiny.make(family), tiny.make_tokenizer(family), TEST)
    model, tokenizer, report = trained(options, family, fresh=(), count=60)
    assert before < 0.6
    assert accuracy(model, tokenizer, TEST) > 0.9
    assert report["steps"] == len(report["losses"]) == 80
    assert np.mean(report["losses"][-8:]) < np.mean(report["losses"][:8]) / 2
    assert not model.training


@pytest.mark.slow
def test_a_checkpoint_without_a_head_can_be_trained(tmp_path):
    tiny.write(tmp_path, "Bert", "Model")
    model, info = transformers.AutoModelForMultipleChoice.from_pretrained(
        tmp_path, output_loading_info=True
    )
    options = FinetuneOptions(training={"train_batch": 8}, epochs=10, learning_rate=2e-3)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    report = finetune(model, tokenizer, drawn(count=60), options, 0, fresh=fresh_parameters(info))
    assert report["fresh"] == ["classifier.bias", "classifier.weight"]
    assert accuracy(model, tokenizer, TEST) > 0.9


def test_the_whole_network_moves():
    start = dict(tiny.make("Bert").named_parameters())
    model, _, _ = trained(fresh=())
    still = [
        name for name, parameter in model.named_parameters() if torch.equal(parameter, start[name])
    ]
    # The head's bias is the same for all choices: none depends upon it.
    assert still == ["classifier.bias"]


def test_a_seed_decides_everything_and_nothing_else_does():
    torch.manual_seed(1)
    first = weights(trained()[0])
    torch.manual_seed(2)
    assert weights(trained(items=TRAIN[::-1])[0]) == first
    assert weights(trained(seed=1)[0]) != first


def test_dropout_is_at_work_and_seeded():
    calm = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    assert trained(**calm)[2]["losses"] != trained()[2]["losses"]
    assert trained()[2]["losses"] == trained()[2]["losses"]


def test_global_random_state_is_left_alone():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    model, tokenizer, _ = trained()
    scores(model, tokenizer, TEST)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert str(np.random.get_state()) == str(numpy_state)  # noqa: NPY002


# Memory


class SmallMemory:
    """Passes of more than some pairs fail as they do on a full GPU."""

    def __init__(self, monkeypatch, pairs):
        self.sizes = []
        real = MultipleChoiceScorer.logits

        def logits(scorer, encoded, sequences):
            self.sizes.append(len(sequences))
            if len(sequences) > pairs:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return real(scorer, encoded, sequences)

        monkeypatch.setattr(MultipleChoiceScorer, "logits", logits)


@pytest.mark.slow
def test_less_memory_means_more_passes_and_the_same_model(monkeypatch):
    calm = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "fresh": ()}
    model, tokenizer, whole = trained(**calm)
    expected = scores(model, tokenizer, TEST)
    with monkeypatch.context() as patch:
        memory = SmallMemory(patch, pairs=8)
        model, tokenizer, parts = trained(**calm)
    assert whole["rows_at_once"] == 8
    assert parts["rows_at_once"] == 2
    assert max(memory.sizes) > 8
    assert parts["steps"] == whole["steps"]
    np.testing.assert_allclose(parts["losses"], whole["losses"], atol=1e-4)
    np.testing.assert_allclose(scores(model, tokenizer, TEST), expected, atol=1e-4)


@pytest.mark.slow
def test_a_row_that_does_not_fit_ends_with_an_error(monkeypatch):
    SmallMemory(monkeypatch, pairs=1)
    with pytest.raises(KbprobeError, match="one row at a time"):
        trained()


def test_an_optimizer_that_does_not_fit_ends_with_an_error(monkeypatch):
    def full(_optimizer):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.optim.AdamW, "step", full)
    with pytest.raises(KbprobeError, match="the optimizer's state"):
        trained()


def test_other_errors_are_not_taken_for_lack_of_memory(monkeypatch):
    def broken(*_):
        raise RuntimeError("shape mismatch")

    monkeypatch.setattr(MultipleChoiceScorer, "logits", broken)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        trained()


def test_divergence_is_an_error():
    with pytest.raises(KbprobeError, match="Use a lower learning rate"):
        trained(QUICK.model_copy(update={"learning_rate": 1e30}))


# Rows, options, schedule


def test_rows_are_drawn_by_id_and_fewer_are_part_of_more():
    few, more = draw_items(TRAIN, 10, 0), draw_items(TRAIN, 30, 0)
    assert few == more[:10]
    assert len(set(more)) == 30
    assert set(draw_items(TRAIN, 30, 1)) != set(more)
    backward = TRAIN[::-1]
    assert [backward[row].id for row in draw_items(backward, 10, 0)] == [
        TRAIN[row].id for row in few
    ]


def test_more_rows_than_there_are_is_an_error_that_says_how_many():
    with pytest.raises(UsageError, match=r"--train 3,000 .* \(60\).* --train 60 or less"):
        draw_items(TRAIN, 3000, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"learning_rate": 0},
        {"training": {"warmup": 1}},
        {"training": {"betas": (0.9,)}},
        {"epoch": 3},
    ],
)
def test_impossible_options_are_refused(wrong):
    with pytest.raises(ValidationError):
        FinetuneOptions(**wrong)


def test_the_learning_rate_rises_fast_and_falls_slowly():
    shares = [slanted_triangle(step, 100, 0.06) for step in range(100)]
    assert np.argmax(shares) == 6
    assert shares[6] == 1
    assert shares[0] == pytest.approx(1 / 32)
    assert shares[-1] < 0.05
    assert np.all(np.diff(shares[:7]) > 0)
    assert np.all(np.diff(shares[6:]) < 0)
    assert slanted_triangle(0, 1, 0.06) == 1  # too short for a warm-up


def test_each_epoch_sees_each_row_once_in_other_batches(monkeypatch):
    seen = []
    real = finetuning.ChoiceTraining._backward

    def backward(training, batch, step):
        seen.append(tuple(sorted(batch.tolist())))
        return real(training, batch, step)

    monkeypatch.setattr(finetuning.ChoiceTraining, "_backward", backward)
    trained(QUICK.model_copy(update={"epochs": 2}))
    assert len(seen) == 6
    for epoch in (seen[:3], seen[3:]):
        assert sorted(row for batch in epoch for row in batch) == list(range(24))
    assert set(seen[:3]) != set(seen[3:])


def test_gradients_of_embeddings_hold_the_words_of_their_step_alone():
    model, tokenizer = tiny.make("Bert"), tiny.make_tokenizer("Bert")
    scorer, rows = MultipleChoiceScorer(model, tokenizer), TRAIN[:16]
    training = finetuning.ChoiceTraining(scorer, scorer.encode(rows), rows, QUICK, 0, 1e-3)
    words = model.get_input_embeddings()
    training._backward(np.arange(16), 0)
    many = int(words.weight.grad.any(1).sum())
    training._backward(np.array([0, 5]), 1)
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.sparse = False
    training._backward(np.array([0, 5]), 1)
    assert 0 < int(words.weight.grad.any(1).sum()) < many
    for name, weight in model.named_parameters():
        if name != "classifier.bias":  # not trained
            assert torch.equal(found[name], weight.grad), name


def test_progress_is_told_after_each_step():
    told = []
    model, tokenizer = tiny.make("Bert"), tiny.make_tokenizer("Bert")
    finetune(model, tokenizer, drawn(), QUICK, 0, lambda *each: told.append(each))
    assert told == [("fine-tuning", step + 1, 3) for step in range(3)]


# Going on from fewer epochs


def test_a_constant_rate_rises_within_the_first_epoch_and_stays():
    options = FinetuneOptions(epochs=2, training={"schedule": "constant", "warmup": 0.06})
    shares = [rate_share(options, step, 200) for step in range(200)]
    assert shares[:3] == pytest.approx([1 / 7, 2 / 7, 3 / 7])
    assert set(shares[6:]) == {1.0}
    longer = options.model_copy(update={"epochs": 5})
    assert [rate_share(longer, step, 500) for step in range(200)] == shares


def test_more_epochs_go_on_from_fewer_to_the_same_weights():
    options = FinetuneOptions(
        training={"train_batch": 8, "schedule": "constant"}, epochs=3, learning_rate=1e-3
    )
    whole, _, report = trained(options)
    model, tokenizer, course = tiny.make("Bert"), tiny.make_tokenizer("Bert"), Course()
    first = options.model_copy(update={"epochs": 1})
    rows, fresh = drawn(), ("classifier.weight",)
    finetune(model, tokenizer, rows, first, 0, fresh=fresh, course=course)
    assert len(course.losses) == 3
    course.continued_after = 1
    rest = finetune(model, tokenizer, rows, options, 0, course=course)
    assert weights(model) == weights(whole)
    assert rest["losses"] == report["losses"]
    assert (rest["continued_after_epochs"], rest["steps"]) == (1, 9)


# Keeping


def test_a_kept_checkpoint_loads_again_with_the_same_scores(tmp_path):
    model, tokenizer, report = trained()
    folder = tmp_path / "kept"
    base = {"id": "my/encoder", "weights_sha256": "ab" * 32}
    keep(model, tokenizer, folder, report, base)
    again, info = transformers.AutoModelForMultipleChoice.from_pretrained(
        folder, output_loading_info=True
    )
    assert fresh_parameters(info) == []
    assert again.config.architectures == ["BertForMultipleChoice"]
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)
    np.testing.assert_allclose(
        scores(again, transformers.AutoTokenizer.from_pretrained(folder), TEST),
        scores(model, tokenizer, TEST),
        atol=1e-6,
    )
    record = json.loads((folder / RECORD).read_text())
    assert record["base"] == base
    assert record["options"] == QUICK.model_dump(mode="json")
    assert record["train_fingerprint"] == report["train_fingerprint"]
    assert record["losses"] == report["losses"]
    assert sorted(tmp_path.iterdir()) == [folder]


def test_a_damaged_checkpoint_is_not_taken_for_the_kept_one(tmp_path):
    model, tokenizer, report = trained()
    folder = tmp_path / "kept"
    keep(model, tokenizer, folder, report, {"id": "my/encoder"})
    identity = {"base": {"id": "my/encoder"}, "seed": report["seed"]}
    assert _holds(folder, identity)
    weights = folder / "model.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-5] ^= 1
    weights.write_bytes(damaged)
    assert not _holds(folder, identity)
    assert not _holds(tmp_path / "elsewhere", identity)


def test_keeping_replaces_a_kept_checkpoint_and_nothing_else(tmp_path):
    model, tokenizer, report = trained()
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.tex").write_text("years of work")
    with pytest.raises(UsageError, match="Name another folder"):
        keep(model, tokenizer, folder, report, {})
    assert (folder / "chapter.tex").exists()
    keep(model, tokenizer, tmp_path / "kept", report, {"id": "one"})
    keep(model, tokenizer, tmp_path / "kept", report, {"id": "two"})
    assert json.loads((tmp_path / "kept" / RECORD).read_text())["base"] == {"id": "two"}


def test_a_failed_write_leaves_what_was_kept_before(tmp_path, monkeypatch):
    model, tokenizer, report = trained()
    folder = tmp_path / "kept"
    keep(model, tokenizer, folder, report, {"id": "one"})

    def full(_folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tokenizer, "save_pretrained", full)
    with pytest.raises(KbprobeError, match="No space left"):
        keep(model, tokenizer, folder, report, {"id": "two"})
    assert json.loads((folder / RECORD).read_text())["base"] == {"id": "one"}
    assert sorted(tmp_path.iterdir()) == [folder]


def test_a_file_in_the_way_is_an_error(tmp_path):
    model, tokenizer, report = trained()
    (tmp_path / "kept").write_text("a file")
    with pytest.raises(KbprobeError, match="not a folder"):
        keep(model, tokenizer, tmp_path / "kept", report, {})


@pytest.mark.parametrize("given", ["betas=0.5,0.9", ["betas=[0.5, 0.9]"], {"betas": (0.5, 0.9)}])
def test_settings_of_training_are_given_by_key_and_recorded_beside_the_options(given):
    recorded = FinetuneOptions.parse({"training": given}, "run").model_dump(mode="json")
    assert recorded == {**FinetuneOptions().model_dump(mode="json"), "betas": [0.5, 0.9]}
    assert "training" not in recorded


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("betaz=1", "no setting 'betaz'.*'betas'.*There are: train_batch, weight"),
        ("warmup=2", r"--training: warmup: must be less than 1 \(got 2\)$"),
        ("betas=0.9,1", "--training: betas.1: must be less than 1"),
        ("weight_decay=inf", "--training: weight_decay: must be a finite number"),
        ("hidden_units=null", "--training: hidden_units: must have a value"),
        (["warmup=0.1", "warmup=0.2"], "--training: warmup: is given twice"),
        ({1: 2}, "--training: no setting 1"),
        ("x", "'x' is not of the form key=value"),
    ],
)
def test_what_a_wrong_setting_is_told(given, message):
    with pytest.raises(UsageError, match=message):
        FinetuneOptions.parse({"training": given}, "run")


def test_a_name_that_is_a_key_of_training_is_told_so(capsys):
    with pytest.raises(UsageError, match=r"no option --weight-decay\. It is a key: --training"):
        parse_options({"weight_decay": 0.2}, [FinetuneOptions], "run")
    with pytest.raises(SystemExit):
        main(["curve", "--hidden-units", "8"])
    told = "no such option: --hidden-units. It is a key: --training hidden_units=VALUE"
    assert told in capsys.readouterr().err
