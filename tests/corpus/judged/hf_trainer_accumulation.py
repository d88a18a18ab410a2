"""Hugging Face's Trainer with four micro-batches an update and an evaluation every ten updates; a tiny GPT-2."""

import os
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

begins = []


class Truth(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        begins.append(time.monotonic_ns())


def rows(count, seed):
    generator = torch.Generator().manual_seed(seed)
    ids = [torch.randint(0, 90, (12,), generator=generator) for _ in range(count)]
    return [{"input_ids": row, "labels": row} for row in ids]


def main():
    torch.manual_seed(41)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=90, n_positions=16, n_embd=24, n_layer=2, n_head=2))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=30,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=8,
            gradient_accumulation_steps=4,
            eval_strategy="steps",
            eval_steps=10,
            logging_steps=5,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        Trainer(model, arguments, train_dataset=rows(480, 1), eval_dataset=rows(32, 2), callbacks=[Truth()]).train()
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
