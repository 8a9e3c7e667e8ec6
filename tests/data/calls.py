"""Calls of the public functions: type checkers refuse those lines that say so, and no others."""

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer

import kbprobe


def calls(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    trainer: Trainer,
    options: dict[str, Any],
) -> None:
    probe = kbprobe.build("wordnet_hypernymy", max_hops=2, limit=1000, pos=["noun"], seed=1)
    kbprobe.build("age_comparison", output=Path("probes/ages"), train_rows=0, overwrite=True)
    for listed in kbprobe.list_probes():
        kbprobe.build(listed.name, limit=100, **options)
    kbprobe.build("wordnet_hypernymy", max_hop=2)  # wrong: misspelt
    kbprobe.build("age_comparison", max_hops=2)  # wrong: of another probe
    kbprobe.build("wordnet_hypernymy", limit="1000")  # wrong: not a number
    kbprobe.build("wordnet_hypernymy", pos=["nouns"])  # wrong: none of the values
    kbprobe.build(["wordnet_hypernymy"])  # wrong: a list

    done = kbprobe.evaluate(probe, "roberta-large", limit=1000, limit_by="rows", shots=2)
    other = kbprobe.evaluate(kbprobe.load("probes/ages"), model, tokenizer=tokenizer, config="x")
    share: float = done.accuracy
    kbprobe.evaluate(probe, "roberta-large", limt=1000)  # wrong: misspelt
    kbprobe.evaluate(probe, "roberta-large", limit_by="row")  # wrong: none of the values
    kbprobe.evaluate(probe, model, tokenizer)  # wrong: by position

    contrasts = kbprobe.compare(done, other, partial=True).rows("contrasts")
    difference: float = contrasts[0]["difference"].value
    kbprobe.compare([done, "results/ages"], seed=1)
    kbprobe.compare(done, other, partial="yes", rows=3)  # wrong: a text, and no such option

    kbprobe.publish("probes/ages", "me/ages", private=True, dry_run=True, replace=True)
    kbprobe.publish("probes/ages", "me/ages", replace="mine")  # wrong: yes or no

    trainer.add_callback(kbprobe.ProbeCallback(trainer, probe, every="epoch", normalization="sum"))
    kbprobe.ProbeCallback(trainer, {"ages": "probes/ages"}, every=5, shots=2, limit=None)
    kbprobe.ProbeCallback(trainer, probe, train=100)  # wrong: the Trainer trains
    print(share, difference, kbprobe.__version__, list("abc"))
