"""Train a small causal LM from scratch: on the antonyms of a probe, then on meronyms."""

import datasets
import tokenizers
import transformers

PROBES = ("wordnet_antonymy", "wordnet_meronymy")
STEPS = 150
BATCH = 8

rows = [datasets.load_dataset(f"probes/{name}", split="train") for name in PROBES]
texts = [
    f"{row['question']} {choice}"
    for part in rows
    for row in part
    for choice in row["choices"]["text"]
]
words = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
words.train_from_iterator(
    texts, tokenizers.trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"])
)
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[PAD]"
)


def phase(part):
    """Return as many questions with their answers as are read in a phase."""
    epochs = -(-STEPS * BATCH // len(part))
    order = datasets.concatenate_datasets([part.shuffle(epoch) for epoch in range(epochs)])
    told = [
        f"{row['question']} {row['choices']['text'][row['answer']]}"
        for row in order.select(range(STEPS * BATCH))
    ]
    return datasets.Dataset.from_dict(dict(tokenizer(told)))


transformers.set_seed(0)
trainer = transformers.Trainer(
    transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=128,
            n_embd=64,
            n_layer=2,
            n_head=4,
            bos_token_id=1,
            eos_token_id=1,
        )
    ),
    transformers.TrainingArguments(
        "tiny",
        max_steps=275,
        per_device_train_batch_size=BATCH,
        learning_rate=3e-3,
        lr_scheduler_type="constant",
        save_steps=25,
        save_only_model=True,
        report_to="none",
    ),
    # An iterable data set is read in order.
    train_dataset=datasets.concatenate_datasets(list(map(phase, rows))).to_iterable_dataset(),
    data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False),
    processing_class=tokenizer,
)
trainer.save_model("tiny/checkpoint-0")
trainer.train()
