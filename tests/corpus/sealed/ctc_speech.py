"""Speech recognition in small: filter banks of random length in batches of similar length, a convolution and a
bidirectional GRU, CTC; greedy decoding and edit distances after each of three epochs. The step is an update.
"""

import os
import random
import tempfile
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

BLANK, PHONES, BANKS = 0, 8, 20


class Utterances(Dataset):
    def __init__(self, count, sounds, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            phones = [rng.randrange(1, PHONES + 1) for _ in range(rng.randint(2, 9))]
            frames = [sounds[phone].expand(rng.randint(4, 9), -1) for phone in phones]
            self.rows.append((torch.cat(frames), torch.tensor(phones)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        features, phones = self.rows[index]
        return features + 0.3 * torch.randn_like(features), phones


class BucketSampler(Sampler):
    """Batches of utterances of nearly one length, in random order."""

    def __init__(self, lengths, batch_size):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches = [order[at : at + batch_size] for at in range(0, len(order), batch_size)]

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)


def collate(rows):
    rows = sorted(rows, key=lambda row: -len(row[0]))
    features, phones = zip(*rows, strict=True)
    lengths = torch.tensor([len(each) for each in features])
    return pad_sequence(features, batch_first=True), lengths, torch.cat(phones), torch.tensor([len(p) for p in phones])


def spec_augment(features, width=4):
    at = random.randrange(BANKS - width)
    features = features.clone()
    features[:, :, at : at + random.randint(0, width)] = 0
    return features


class Recogniser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv = nn.Conv1d(BANKS, width, 5, stride=2, padding=2)
        self.gru = nn.GRU(width, width, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, PHONES + 1)

    def forward(self, features, lengths):
        x = self.conv(features.transpose(1, 2)).relu().transpose(1, 2)
        lengths = (lengths + 1) // 2
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        x, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.head(x).log_softmax(-1), lengths


def greedy(log_probs, lengths):
    for row, length in zip(log_probs.argmax(-1).tolist(), lengths.tolist(), strict=True):
        row = row[:length]
        yield [p for p, before in zip(row, [BLANK, *row[:-1]], strict=True) if p not in (BLANK, before)]


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


@torch.no_grad()
def error_rate(model, loader):
    model.eval()
    wrong = total = 0
    for features, lengths, phones, sizes in loader:
        answers = greedy(*model(features, lengths))
        for found, truth in zip(answers, phones.split(sizes.tolist()), strict=True):
            wrong += edit_distance(found, truth.tolist())
            total += len(truth)
    model.train()
    return wrong / total


def main(epochs=3, batch_size=8):
    random.seed(61)
    torch.manual_seed(61)
    sounds = torch.randn(PHONES + 1, BANKS)
    train, held_out = Utterances(160, sounds, 1), Utterances(30, sounds, 2)
    sampler = BucketSampler([len(features) for features, _ in train.rows], batch_size)
    loader = DataLoader(train, batch_sampler=sampler, collate_fn=collate)
    held_out_loader = DataLoader(held_out, batch_size=10, collate_fn=collate)
    model, criterion = Recogniser(), nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=epochs * len(loader))
    begins = []
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(epochs):
            losses = []
            for features, lengths, phones, sizes in loader:
                begins.append(time.monotonic_ns())
                log_probs, lengths = model(spec_augment(features), lengths)
                loss = criterion(log_probs.transpose(0, 1), phones, lengths, sizes)
                if not torch.isfinite(loss):
                    print("skipped a batch")
                    continue
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
            print(
                f"epoch {epoch}: CTC {sum(losses) / len(losses):.3f}, errors {error_rate(model, held_out_loader):.2f}"
            )
            torch.save(
                {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                os.path.join(folder, "last.pt"),
            )
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
