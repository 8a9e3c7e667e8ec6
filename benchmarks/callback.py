"""Measure the cost of ProbeCallback: the same Trainer run with and without it.

    python benchmarks/callback.py [--steps 100] [--every 50] [--limit 500] [--repeats 1] [--json]

A causal and a masked LM of 4 layers of 256 units (seeded random weights, a byte-level vocabulary
made here) are trained on sentences of the train split of age_comparison, 16 sequences of 128 tokens
per step. The probe is age_comparison: ``--limit`` rows of its test split before the first step,
after every ``--every`` steps and after the last. Runs with and without the callback alternate.

- **share**: seconds inside the callback (including reading and tokenizing the rows) divided by
  seconds of the whole training.
- **ratio**: seconds of training with the callback divided by seconds without it (medians).
- **same weights**: whether both runs end with the same bits in every weight.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WIDTH, BATCH = 128, 16


def make_tokenizer(texts: list[str]) -> Any:
    """Train a byte-level tokenizer with a mask token."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=4096,
            special_tokens=["<pad>", "<s>", "<mask>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<s>", mask_token="<mask>"
    )


def make_model(masked: bool, vocabulary: int) -> Any:
    """Make a model with seeded random weights."""
    import transformers

    transformers.set_seed(0)
    if not masked:
        config = transformers.GPT2Config(
            vocab_size=vocabulary, n_positions=256, n_embd=256, n_layer=4, n_head=4
        )
        return transformers.GPT2LMHeadModel(config)
    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=vocabulary,
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
        )
    )


def train(
    masked: bool, rows: Any, tokenizer: Any, probe: Any, given: Any, scratch: Path
) -> dict[str, Any]:
    """Train once; return the seconds, those inside the callback, and the weights."""
    import transformers

    import kbprobe

    trainer = transformers.Trainer(
        make_model(masked, len(tokenizer)),
        transformers.TrainingArguments(
            str(scratch),
            max_steps=given.steps,
            per_device_train_batch_size=BATCH,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=rows,
        data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm=masked),
        processing_class=tokenizer,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    callback = None
    if probe is not None:
        callback = kbprobe.ProbeCallback(trainer, probe, every=given.every, limit=given.limit)
        trainer.add_callback(callback)
    began = time.perf_counter()
    trainer.train()
    return {
        "seconds": time.perf_counter() - began,
        "inside": callback.seconds if callback else 0.0,
        "logged": {
            entry["step"]: entry["eval_age_comparison_accuracy"]
            for entry in trainer.state.log_history
            if "eval_age_comparison_accuracy" in entry
        },
        "weights": trainer.model.state_dict(),
    }


def main() -> None:
    """Run the benchmark and print the results."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--every", type=int, default=50)
    options.add_argument("--limit", type=int, default=500)
    options.add_argument("--repeats", type=int, default=1)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()

    import torch
    import transformers

    import kbprobe

    transformers.logging.set_verbosity_error()
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "age_comparison"
        kbprobe.build("age_comparison", output=folder)
        lines = [
            row["question"].replace("[MASK]", row["choices"]["text"][row["answer"]])
            for row in kbprobe.load(folder)["train"]
        ]
        tokenizer = make_tokenizer(lines)
        ids = [token for line in lines for token in tokenizer(line + "\n")["input_ids"]]
        count = len(ids) // WIDTH
        rows = [{"input_ids": ids[at * WIDTH : (at + 1) * WIDTH]} for at in range(count)]
        for kind in ("causal", "masked"):
            runs: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
            for _ in range(given.repeats):
                for probe in (None, str(folder)):
                    done = train(kind == "masked", rows, tokenizer, probe, given, Path(name))
                    runs[probe is not None].append(done)
            medians = {
                with_it: statistics.median(run["seconds"] for run in some)
                for with_it, some in runs.items()
            }
            plain, probed = runs[False][0]["weights"], runs[True][0]["weights"]
            found[kind] = {
                "seconds without": medians[False],
                "seconds with": medians[True],
                "ratio": medians[True] / medians[False],
                "share": statistics.median(run["inside"] / run["seconds"] for run in runs[True]),
                "same weights": all(torch.equal(plain[key], probed[key]) for key in plain),
                "accuracy by step": runs[True][0]["logged"],
            }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for kind, figures in found.items():
        print(f"{kind} LM")
        for what, value in figures.items():
            print(f"  {what}: {value:.3f}" if isinstance(value, float) else f"  {what}: {value}")


if __name__ == "__main__":
    main()
