"""Checkpoints: what they are is read off their files, and what cannot be scored is refused."""

import io
import json
import os
import re
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import evaluation
from benchmarks import naive_causal
from evaluation.items.types import Item
from evaluation.learners.registry import choose_learner
from evaluation.models.capabilities import MULTIPLE_CHOICE, Capability
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.loading import (
    _load,
    choose_device,
    choose_dtype,
    load_model,
    load_tokenizer,
)
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.causal.scorer import CausalScorer
from evaluation.scorers.registry import choose_scorer
from kbprobe.checkpoint_files import weight_files
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import jsonl_probe, tiny_causal

CPU = torch.device("cpu")


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Tiny seeded BERT weights with a masked-LM head."""
    folder = tmp_path_factory.mktemp("bert")
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    torch.manual_seed(3)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return folder


def copy_with(bert, folder, **changes):
    """A checkpoint like ``bert`` whose config.json says otherwise (None: says nothing)."""
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= changes
    config = {name: value for name, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("model_type", "architecture", "scorer"),
    [
        ("bert", "BertForMaskedLM", "masked_lm"),
        ("bert", "BertForPreTraining", "masked_lm"),
        ("bert", "BertForMultipleChoice", "multiple_choice"),
        ("bert", "BertLMHeadModel", "causal_lm"),
        ("roberta", "RobertaForMaskedLM", "masked_lm"),
        ("xlm-roberta", "XLMRobertaForMaskedLM", "masked_lm"),
        ("modernbert", "ModernBertForMaskedLM", "masked_lm"),
        ("electra", "ElectraForMaskedLM", "masked_lm"),
        ("deberta-v2", "DebertaV2ForMultipleChoice", "multiple_choice"),
        ("llama", "LlamaForCausalLM", "causal_lm"),
        ("gpt2", "GPT2LMHeadModel", "causal_lm"),
        ("gemma2", "Gemma2ForCausalLM", "causal_lm"),
        ("deberta-v2", "DebertaV2ForSequenceClassification", "classifier"),
    ],
)
def test_the_architecture_decides_not_the_name(bert, tmp_path, model_type, architecture, scorer):
    changes = {"model_type": model_type, "architectures": [architecture]}
    folder = copy_with(bert, tmp_path / "gpt-something-roberta", **changes)
    found = open_checkpoint(str(folder))
    assert (choose_scorer(found).name, found.architecture) == (scorer, architecture)
    assert Capability.HIDDEN_STATES | Capability.TRAINABLE in found.capabilities


@pytest.mark.parametrize(
    ("model_type", "architecture", "remedy"),
    [
        ("bert", "BertModel", "--train N"),
        ("electra", "ElectraForPreTraining", "--train N"),
        ("t5", "T5ForTokenClassification", "--scorer seq2seq_lm"),
        ("bart", "BartForSequenceClassification", "--scorer seq2seq_lm"),
    ],
)
def test_what_no_scorer_reads_is_refused_with_the_remedy(
    bert, tmp_path, model_type, architecture, remedy
):
    changes = {"model_type": model_type, "architectures": [architecture]}
    folder = copy_with(bert, tmp_path / "model", **changes)
    with pytest.raises(UsageError, match=remedy) as caught:
        choose_scorer(open_checkpoint(str(folder)))
    assert architecture in str(caught.value)
    said = str(caught.value).replace(str(folder), "model")
    assert max(len(sentence.split()) for sentence in said.split(". ")) <= 20, "short sentences"


def test_the_scorer_can_be_overridden_and_a_missing_head_is_still_refused(bert, tmp_path):
    found = open_checkpoint(str(bert))
    assert choose_scorer(found, "multiple_choice").needs == Capability.CHOICE_HEAD
    with pytest.raises(UsageError, match="no trained multiple-choice head"):
        load_model(found, CPU, torch.float32, MULTIPLE_CHOICE)
    with pytest.raises(UsageError, match=r"makes a multiple_choice model.*--scorer masked_lm"):
        choose_learner(found, None, "masked_lm")
    assert choose_learner(found, None, None).scorer.name == "multiple_choice"
    with pytest.raises(UsageError, match=r"no scorer 'masked_llm'. Did you mean 'masked_lm'"):
        choose_scorer(found, "masked_llm")


def test_an_encoder_decoder_can_be_fitted_by_no_learner(bert, tmp_path):
    changes = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
    found = open_checkpoint(str(copy_with(bert, tmp_path / "model", **changes)))
    assert not found.capabilities & (Capability.HIDDEN_STATES | Capability.TRAINABLE)
    with pytest.raises(UsageError, match="--train"):
        choose_learner(found, None, None)


def test_weights_are_loaded_in_the_type_asked_for(bert):
    model = load_model(open_checkpoint(str(bert)), CPU, torch.bfloat16)
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_identity_follows_content_and_not_place(bert, tmp_path):
    one = open_checkpoint(str(bert))
    shutil.copytree(bert, tmp_path / "moved")
    assert open_checkpoint(str(tmp_path / "moved")).weights_sha256 == one.weights_sha256
    changed = copy_with(bert, tmp_path / "changed", layer_norm_eps=0.1)
    assert open_checkpoint(str(changed)).weights_sha256 != one.weights_sha256


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "no such file or folder"),
        ("/nowhere/at/all", "no such file or folder"),
        ("a/b/c", "no such file or folder"),
        ("nowhere.gguf", "no such file or folder"),
        ("somebody/some-model", "offline mode is on"),
        ("not a name!", "neither a folder here nor"),
    ],
)
def test_what_is_not_there_is_named(name, message):
    with pytest.raises(KbprobeError, match=message) as caught:
        open_checkpoint(name)
    assert name in str(caught.value)


def test_folders_that_hold_no_checkpoint(bert, tmp_path):
    with pytest.raises(UsageError, match=r"no config\.json"):
        open_checkpoint(str(tmp_path))
    folder = copy_with(bert, tmp_path / "weightless")
    (folder / "model.safetensors").unlink()
    with pytest.raises(KbprobeError, match="holds no weights"):
        open_checkpoint(str(folder))
    (folder / "config.json").write_text("{ not json")
    with pytest.raises(KbprobeError, match="configuration of"):
        open_checkpoint(str(folder))
    with pytest.raises(UsageError, match="is a file"):
        open_checkpoint(str(folder / "config.json"))


def sharded(bert, folder, index, shard):
    """``bert`` in two shards that are named by a pattern, with their index."""
    (folder / shard).parent.mkdir(parents=True)
    for file in ("config.json", "vocab.txt"):
        shutil.copy(bert / file, folder)
    tensors = load_file(bert / "model.safetensors")
    parts = {shard.format(at): sorted(tensors)[at::2] for at in range(2)}
    for name, keys in parts.items():
        save_file({key: tensors[key] for key in keys}, folder / name, {"format": "pt"})
    found = {key: name for name, keys in parts.items() for key in keys}
    (folder / index).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": found}))
    return folder


@pytest.mark.parametrize(
    "shard", ["part{}.safetensors", "model-{}.safetensors", "in/x{}.safetensors"]
)
def test_shards_are_those_that_the_index_names(bert, tmp_path, shard):
    folder = sharded(bert, tmp_path / "m", "model.safetensors.index.json", shard)
    checkpoint = open_checkpoint(str(folder))
    files = weight_files(str(folder), folder, {})
    assert files == [folder / shard.format(at) for at in range(2)]
    model, _ = _load(checkpoint, torch.float32, checkpoint.head)
    whole = transformers.BertForMaskedLM.from_pretrained(bert)
    assert torch.equal(
        model.bert.embeddings.word_embeddings.weight, whole.get_input_embeddings().weight
    )
    save_file({"x": torch.zeros(1)}, folder / shard.format(1))
    assert open_checkpoint(str(folder)).weights_sha256 != checkpoint.weights_sha256
    (folder / shard.format(0)).unlink()
    with pytest.raises(
        KbprobeError, match=r"names 1 files that are not there, such as .*0.safetens"
    ):
        open_checkpoint(str(folder))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("[]", "is no index of weights"),
        ('{"weight_map": {"a": 1}}', "is no index of weights"),
        ('{"weight_map": {"a": "../x.safetensors"}}', "which is outside of its folder"),
        ("{", "index.json"),
    ],
)
def test_an_index_that_cannot_be_read_is_named(bert, tmp_path, index, message):
    folder = copy_with(bert, tmp_path / "m")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(UsageError, match=message):
        open_checkpoint(str(folder))


def test_weights_of_a_variant_alone_are_refused_with_the_remedy(bert, tmp_path):
    index = "model.fp16.safetensors.index.json"
    folder = sharded(bert, tmp_path / "m", index, "model.fp16-{}.safetensors")
    with pytest.raises(KbprobeError, match=r"is of a variant: load it with .*variant='fp16'"):
        open_checkpoint(str(folder))


def test_the_digest_is_of_the_weights_that_are_loaded(bert, tmp_path):
    folder = copy_with(bert, tmp_path / "m")
    torch.save(load_file(bert / "model.safetensors"), folder / "pytorch_model.bin")
    for further in ("mine.safetensors", "model-of-before.safetensors"):
        shutil.copy(bert / "model.safetensors", folder / further)
    names = [path.name for path in weight_files("m", folder, {})]
    assert names == ["model.safetensors"]
    assert weight_files("m", folder, {"use_safetensors": False}) == [folder / "pytorch_model.bin"]
    folder = copy_with(folder, tmp_path / "n", transformers_weights="mine.safetensors")
    assert weight_files("n", folder, {}) == [folder / "mine.safetensors"]
    (folder / "mine.safetensors").unlink()
    with pytest.raises(KbprobeError, match=r"holds no weights \(no mine.safetensors in"):
        open_checkpoint(str(folder))


def test_damaged_weights_are_named(bert, tmp_path):
    folder = copy_with(bert, tmp_path / "damaged")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(KbprobeError, match="cannot be loaded as a masked LM"):
        load_model(open_checkpoint(str(folder)), CPU, torch.float32)


class Pickled:
    """Runs code when it is unpickled by whoever lets it."""

    def __reduce__(self):
        return os.system, ("exit 1",)


DEEP = b"[" * 100_000 + b"]" * 100_000
SAVED = io.BytesIO()
torch.save({"a": Pickled()}, SAVED)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("pytorch_model.bin", SAVED.getvalue(), ": a pickle that holds .*system, .* safetensors"),
        ("pytorch_model.bin", SAVED.getvalue()[:-30], "is cut off. Get it again"),
        ("pytorch_model.bin", b"weights", ": damaged, or no weights of PyTorch. Get them again"),
        ("pytorch_model.bin", b"", "is empty"),
        ("model.safetensors", b"weights" * 9, "is damaged or cut off: it has no header"),
        ("config.json", DEEP, "is nested too deeply. Get it again, or correct it"),
        ("config.json", b'{"model_type": "bert"', "is not JSON: Expecting ',' delimiter: line 1"),
        ("config.json", b"null", "is not a JSON object"),
        ("tokenizer.json", DEEP, "is nested too deeply"),
        ("tokenizer.json", b'{"version"', "is not JSON: Expecting ':'"),
        ("tokenizer_config.json", b"[]", "is not a JSON object"),
        ("special_tokens_map.json", b"[1]", "is not a JSON object"),
        ("chat_template.jinja", b"\xff", "is not UTF-8 text .line 1, byte 1"),
    ],
)
def test_a_damaged_file_is_named(bert, tmp_path, name, content, problem):
    folder = copy_with(bert, tmp_path / "damaged")
    if name.endswith(".bin"):
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(KbprobeError, match=rf"{folder / name} ?{problem}"):
        opened(folder)


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("config.json", {"hidden_size": "many"}, "Field 'hidden_size' expected int, got str"),
        ("config.json", {"architectures": [5]}, r"architectures is \[5\], not a list of names"),
        ("config.json", {"auto_map": 5}, "TypeError: argument of type 'int'"),
        ("config.json", {"num_attention_heads": 0}, "ZeroDivisionError"),
        ("config.json", {"vocab_size": 51}, "other shapes than its configuration says"),
        ("tokenizer.json", {}, "KeyError: 'added_tokens'"),
        ("tokenizer.json", {"added_tokens": [], "model": {"type": "Nope"}}, "did not match any"),
        ("tokenizer_config.json", {"model_max_length": "x"}, "model_max_length is 'x', not a"),
        ("tokenizer_config.json", {"tokenizer_class": 5}, "AttributeError: 'int'"),
    ],
)
def test_a_value_that_cannot_be_is_the_files_fault(bert, tmp_path, name, values, problem):
    folder = copy_with(bert, tmp_path / "odd", **(values if name == "config.json" else {}))
    if name != "config.json":
        (folder / name).write_text(json.dumps(values))
    with pytest.raises(KbprobeError, match=rf"{problem}.*Check .*{name}.* in {folder}, or get"):
        opened(folder)


def opened(folder):
    """Load all of a checkpoint."""
    checkpoint = open_checkpoint(str(folder))
    load_tokenizer(checkpoint)
    return load_model(checkpoint, CPU, torch.float32)


def test_weights_that_lack_part_of_the_encoder_are_refused(bert, tmp_path):
    deeper = copy_with(bert, tmp_path / "deeper", num_hidden_layers=2)
    with pytest.raises(UsageError, match="not in the checkpoint"):
        load_model(open_checkpoint(str(deeper)), CPU, torch.float32)


def test_code_that_comes_with_a_checkpoint_does_not_run_unasked(bert, tmp_path):
    marker = tmp_path / "ran"
    folder = copy_with(
        bert,
        tmp_path / "remote",
        model_type="homemade",
        auto_map={"AutoConfig": "code.Config", "AutoModelForMaskedLM": "code.Model"},
    )
    (folder / "code.py").write_text(f"open({str(marker)!r}, 'w')\nclass Config: pass\n")
    with pytest.raises(KbprobeError, match="--trust-remote-code"):
        open_checkpoint(str(folder))
    assert not marker.exists()


def test_the_tokenizer_is_the_one_beside_the_weights(bert, tmp_path):
    tokenizer = load_tokenizer(open_checkpoint(str(bert)))
    assert tokenizer("a dog")["input_ids"] == [2, 5, 6, 3]
    folder = copy_with(bert, tmp_path / "mute")
    (folder / "vocab.txt").unlink()
    with pytest.raises(KbprobeError, match="holds no tokenizer"):
        open_checkpoint(str(folder))


def test_devices_and_dtypes():
    assert choose_device("cpu") == CPU
    assert choose_dtype("auto", CPU) == torch.float32
    assert choose_dtype("bfloat16", CPU) == torch.bfloat16
    with pytest.raises(UsageError, match="no device 'gpu'"):
        choose_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="no device 'cuda'"):
            choose_device("cuda")


def test_code_that_comes_along_is_part_of_the_identity(bert, tmp_path):
    folder = copy_with(bert, tmp_path / "remote")
    (folder / "modeling.py").write_text("x = 1\n")
    first = open_checkpoint(str(folder), trust_remote_code=True).weights_sha256
    (folder / "modeling.py").write_text("x = 2\n")
    assert open_checkpoint(str(folder), trust_remote_code=True).weights_sha256 != first


# What cannot be loaded, or not be used, here


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return tiny_causal.write_slow(tmp_path_factory.mktemp("slow") / "ctrl")


def test_a_slow_tokenizer_serves_where_no_offsets_are_needed(slow):
    checkpoint = open_checkpoint(str(slow))
    tokenizer = load_tokenizer(checkpoint)
    assert not tokenizer.is_fast
    model = load_model(checkpoint, torch.device("cpu"), torch.float32)
    items = [
        Item("a", "mc_qa", "A dog is a kind of", ("animal", "rodent", "vehicle"), 0),
        Item("b", "mc_mlm", "A [MASK] can fly.", ("robin", "penguin"), 0),
    ]
    scorer = CausalScorer(model, tokenizer)
    encoded = scorer.encode(items)
    found = np.zeros(5)
    np.add.at(found, encoded.slot_choice, scorer.score(encoded, np.arange(len(encoded.lengths))))
    expected = [
        score
        for item in items
        for context, texts in Prompt().render(item)
        for score in naive_causal.score_choices(model, tokenizer, context, texts, 64)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "user"),
    [
        ({"scorer": "masked_lm"}, "the scorer of masked LMs"),
        ({"train": 4, "learner": "full", "epochs": 1}, "the scorer of multiple-choice models"),
    ],
)
def test_a_slow_tokenizer_is_refused_where_they_are(bert, slow, tmp_path, options, user):
    shutil.copytree(bert, tmp_path / "model", ignore=shutil.ignore_patterns("vocab.txt"))
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        shutil.copy(slow / name, tmp_path / "model")
    items = [Item(f"{n}", "mc_qa", f"What is {n}?", ("a dog", "a cat"), 0) for n in range(8)]
    probe = jsonl_probe.write(tmp_path / "probe", {"train": items[:4], "test": items[4:]})
    with pytest.raises(UsageError) as refused:
        evaluation.evaluate(str(probe), str(tmp_path / "model"), facts=False, **options)
    assert f"{user} needs a fast tokenizer" in str(refused.value)
    assert "has a slow one (CTRLTokenizer). Name a checkpoint with a tokeniz" in str(refused.value)


@pytest.mark.parametrize(
    ("method", "package"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"quant_method": "gptq", "bits": 4}, "optimum|gptqmodel"),
        ({"quant_method": "torchao"}, "torchao"),
    ],
    ids=lambda given: given if isinstance(given, str) else given["quant_method"],
)
def test_a_quantized_checkpoint_names_the_package_that_reads_it(bert, tmp_path, method, package):
    if any(find_spec(name) for name in package.split("|")):
        pytest.skip(f"{package} is installed")
    folder = copy_with(bert, tmp_path / "quantized", quantization_config=method)
    with pytest.raises(KbprobeError) as refused:
        load_model(open_checkpoint(str(folder)), torch.device("cpu"), torch.float32)
    said = str(refused.value)
    assert f"is quantized ({method['quant_method']})" in said
    assert re.search(package, said)
    assert "or name the checkpoint that was quantized" in said


def test_a_model_whose_layers_are_spread_scores_as_it_does_in_one_place(tmp_path):
    """One layer on the disk stands for one on another GPU: hooks of accelerate move what it reads.

    ``auto`` finds a single device here.
    """
    folder = tiny_causal.write("gpt2", tmp_path / "gpt2")
    items = [Item("1", "mc_qa", "A dog is a kind of", ("animal", "city by the sea"), 0)]
    found = []
    parts = ("wte", "wpe", "h.0", "ln_f")
    spread = {**{f"transformer.{part}": "cpu" for part in parts}, "lm_head": "cpu"}
    spread |= {f"transformer.h.{n}": "disk" for n in range(1, 9)}
    for device_map in (None, "auto", spread):
        offload = {"offload_folder": str(tmp_path / "disk")} if device_map is spread else {}
        checkpoint = open_checkpoint(str(folder), model_args=offload)
        model = load_model(checkpoint, CPU, torch.float32, device_map=device_map)
        scorer = CausalScorer(model, load_tokenizer(checkpoint))
        encoded = scorer.encode(items)
        found.append(scorer.score(encoded, np.arange(len(encoded.lengths))))
    assert any(weight.is_meta for weight in model.parameters()), "a layer is elsewhere"
    for scores in found[1:]:
        np.testing.assert_allclose(scores, found[0], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "cpu"}, "leave --device out"),
        ({"train": 4}, "--device-map is for scoring"),
        ({"random_weights": 1}, "--random-weights out"),
        ({"model_args": "device_map=auto"}, "use --device-map"),
    ],
)
def test_what_does_not_go_with_a_device_map_is_refused(options, said, bert):
    spread = {} if "model_args" in options else {"device_map": "auto"}
    with pytest.raises(UsageError, match=said):
        evaluation.evaluate("probe", bert, **spread, **options)


def test_processes_that_share_rows_do_not_spread_the_model_too(bert, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="run evaluate-probe without accelerate launch"):
        evaluation.evaluate("probe", bert, device_map="auto")
