"""Time of a fine-tuning step, compared with transformers' Trainer on the same rows.

    python benchmarks/finetuning.py MODEL PROBE [--rows N] [--rounds N] [--threads N] [--json]

MODEL is a checkpoint (if it has no masked-LM head, a random one is used for ``full_mlm``), PROBE a
folder with clozes of a train split. Two ways of training are timed, each alternating with the
Trainer, on the CPU and in CPU seconds, which other jobs on the machine hardly affect:

- **full**: a multiple-choice network, each choice read with its question;
- **full_mlm**: a masked LM, the cross-entropy of the candidates' logits at the mask. The Trainer's
  side computes all logits at all positions, as transformers' masked LMs do.

The Trainer gets the same batches (of 16 rows, or fewer if ``--rows`` would give fewer than three
batches), padded the same, and the same optimizer, schedule, clipping and precision, without
dropout. The benchmark fails if the losses of the steps differ. It also gets the rows in random
batches, as its users train by default: ours holds rows of similar length, and so less padding. All
texts are tokenized beforehand. A step's time is the mean of a round's, of the fastest round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BATCH = 16
WARM_UP = 2
"""Number of first steps that are not timed: they fill caches and create the optimizer's state."""

TOLERANCE = 1e-4
"""How far the losses of both sides may be apart: they differ by the order of sums, about 3e-7."""


def options_of(batch: int) -> Any:
    """Return the training options of both sides."""
    from evaluation.learners.entries import FinetuneOptions

    return FinetuneOptions(training={"train_batch": batch}, epochs=1)


def prepare(network: Any, checkpoint: str, items: Sequence[Any]) -> tuple[Any, ...]:
    """Load a model, and return the scorer that is trained and the encoded rows."""
    import torch
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, network.head.auto_class).from_pretrained(checkpoint)
    for module in model.modules():  # whatever the configuration calls them
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    scorer = network.scorer(model, tokenizer)
    return model, tokenizer, scorer, scorer.encode(items)


def ours(network: Any, checkpoint: str, items: Sequence[Any], options: Any) -> Any:
    """Train with our loop; return seconds per step, losses and the batches of rows."""
    from evaluation.learners.finetune.training import ChoiceTraining

    model, _, scorer, encoded = prepare(network, checkpoint, items)
    model.train()
    training = ChoiceTraining(scorer, encoded, items, options, 0, 2e-5)
    batches = [batch.tolist() for batch in training._batches(0)]
    times: list[float] = []

    def progress(*_: Any) -> None:
        times.append(time.process_time())

    began = time.process_time()
    losses = training.run(progress).losses
    return np.diff([began, *times]).tolist(), losses, batches


def theirs(
    network: Any,
    checkpoint: str,
    items: Sequence[Any],
    options: Any,
    batches: list[list[int]],
) -> Any:
    """Train on the same batches with transformers' Trainer; return seconds per step and losses."""
    import torch
    import transformers

    model, tokenizer, *_ = prepare(network, checkpoint, items)
    order = [row for batch in batches for row in batch]
    choices = network.learner == "full"
    features = _choice_features if choices else _cloze_features
    rows = [features(tokenizer, items[row]) for row in order]

    def collate(batch: list[dict[str, Any]]) -> dict[str, Any]:
        flat = [one for row in batch for one in row["inputs"]]
        padded = dict(tokenizer.pad(flat, return_tensors="pt"))
        if choices:
            padded = {k: v.view(len(batch), -1, v.shape[-1]) for k, v in padded.items()}
        else:
            padded["candidates"] = torch.tensor([row["candidates"] for row in batch])
        padded["labels"] = torch.tensor([row["answer"] for row in batch])
        return padded

    times: list[float] = []
    losses: list[float] = []

    class Clock(transformers.TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            times.append(time.process_time())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.process_time())

    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *_: Any, **__: Any) -> Any:
            return torch.utils.data.SequentialSampler(rows)

        def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if choices:
                loss = model(**inputs).loss
            else:
                labels, candidates = inputs.pop("labels"), inputs.pop("candidates")
                every = model(**inputs).logits
                at = (inputs["input_ids"] == tokenizer.mask_token_id).int().argmax(-1)
                asked = every[torch.arange(len(at)), at].gather(1, candidates)
                loss = torch.nn.functional.cross_entropy(asked, labels)
            losses.append(float(loss.detach()))
            return loss

    from evaluation.learners.base import slanted_triangle

    steps = len(batches)
    model.train()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=options.settings.train_batch,
            max_grad_norm=options.settings.max_grad_norm,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        weights = list(model.parameters())
        groups = [
            {
                "params": [w for w in weights if w.dim() > 1],
                "weight_decay": options.settings.weight_decay,
            },
            {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
        ]
        # Fused, like the Trainer's default optimizer.
        optimizer = torch.optim.AdamW(groups, lr=2e-5, betas=options.settings.betas, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda step: slanted_triangle(min(step, steps - 1), steps, options.settings.warmup),
        )
        trainer = InOrder(
            model=model,
            args=arguments,
            train_dataset=rows,
            data_collator=collate,
            callbacks=[Clock()],
            optimizers=(optimizer, schedule),
        )
        trainer.train()
    return np.diff(times).tolist(), losses


def _choice_features(tokenizer: Any, item: Any) -> dict[str, Any]:
    question = item.question.replace("[MASK]", tokenizer.mask_token)
    return {"inputs": [tokenizer(question, text) for text in item.choices], "answer": item.answer}


def _cloze_features(tokenizer: Any, item: Any) -> dict[str, Any]:
    question = item.question.replace("[MASK]", tokenizer.mask_token)
    candidates = [tokenizer.convert_tokens_to_ids(text) for text in item.choices]
    return {"inputs": [tokenizer(question)], "candidates": candidates, "answer": item.answer}


def compare(network: Any, checkpoint: str, items: Any, rounds: int, options: Any) -> Any:
    """Alternate the sides; return seconds per step, and the difference of losses."""
    sides: dict[str, list[float]] = {"ours": [], "trainer": [], "trainer_random_batches": []}
    apart = 0.0
    for number in range(rounds):
        seconds, losses, batches = ours(network, checkpoint, items, options)
        sides["ours"].append(statistics.fmean(seconds[WARM_UP:]))
        seconds, other = theirs(network, checkpoint, items, options, batches)
        sides["trainer"].append(statistics.fmean(seconds[WARM_UP:]))
        apart = max(apart, float(np.abs(np.subtract(losses, other)).max()))
        order = np.random.default_rng(number).permutation(len(items))
        drawn = order.reshape(len(batches), -1).tolist()
        seconds, _ = theirs(network, checkpoint, items, options, drawn)
        sides["trainer_random_batches"].append(statistics.fmean(seconds[WARM_UP:]))
    least = {side: min(times) for side, times in sides.items()}
    return {
        "learner": network.learner,
        "steps": len(batches) - WARM_UP,
        "rounds": rounds,
        "seconds_a_step": least,
        "times_as_fast": {side: least[side] / least["ours"] for side in sides if side != "ours"},
        "losses_apart": apart,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("probe")
    parser.add_argument("--rows", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", dest="as_json")
    asked = parser.parse_args(arguments)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch
    import transformers

    from evaluation.items.sources import open_probe
    from evaluation.learners.finetune.training import CANDIDATES, CHOICES

    torch.set_num_threads(asked.threads)
    transformers.logging.set_verbosity_error()
    items = list(open_probe(asked.probe, split="train").items)[: asked.rows]
    batch = min(BATCH, len(items) // (WARM_UP + 1))
    if not batch:
        raise SystemExit(
            f"{len(items)} rows to train on are fewer than {WARM_UP + 1}, a row a step: use a "
            f"higher --rows, or a probe with more rows in its train split"
        )
    items = items[: len(items) // batch * batch]
    options = options_of(batch)
    found = [
        compare(network, asked.model, items, asked.rounds, options)
        for network in (CHOICES, CANDIDATES)
    ]
    if asked.as_json:
        print(json.dumps(found, indent=2))
    for one in found:
        if one["losses_apart"] > TOLERANCE:
            raise SystemExit(
                f"{one['learner']}: losses are {one['losses_apart']:.1e} apart: both sides do not "
                "do the same"
            )
        if asked.as_json:
            continue
        times, ratios = one["seconds_a_step"], one["times_as_fast"]
        print(
            f"{one['learner']:9} {one['steps']} steps of {one['rounds']} rounds: ours "
            f"{times['ours']:.3f} s; Trainer, same batches {times['trainer']:.3f} s "
            f"({ratios['trainer']:.2f} times), random batches "
            f"{times['trainer_random_batches']:.3f} s "
            f"({ratios['trainer_random_batches']:.2f} times); losses at most "
            f"{one['losses_apart']:.1e} apart"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
