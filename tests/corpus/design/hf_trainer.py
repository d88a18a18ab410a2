"""Hugging Face's Trainer: a tiny BERT classifier built from its configuration, two epochs."""

import os
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

begins = []


class Sentences(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        ids = torch.randint(5, 120, (16,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "attention_mask": torch.ones(16, dtype=torch.long), "labels": int(ids[0] > 60)}


class Truth(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        begins.append(time.monotonic_ns())


def main():
    torch.manual_seed(21)
    config = BertConfig(
        vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=2,
            per_device_train_batch_size=8,
            learning_rate=1e-3,
            logging_steps=10,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        Trainer(
            BertForSequenceClassification(config), arguments, train_dataset=Sentences(), callbacks=[Truth()]
        ).train()
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
