"""A conditional GAN in Lightning with two optimizers by hand (manual optimisation) and a callback that draws pictures
after each of three epochs.
"""

import os
import tempfile
import time

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

batches, updates = [], []


class ConditionalGAN(pl.LightningModule):
    def __init__(self, latent=8, classes=4, points=24, lr=2e-4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = nn.Sequential(
            nn.Linear(latent + classes, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, points), nn.Tanh()
        )
        self.discriminator = nn.Sequential(
            nn.Linear(points + classes, 64), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(64, 1)
        )

    def forward(self, z, labels):
        condition = nn.functional.one_hot(labels, self.hparams.classes).float()
        return self.generator(torch.cat([z, condition], dim=1))

    def judge(self, x, labels):
        condition = nn.functional.one_hot(labels, self.hparams.classes).float()
        return self.discriminator(torch.cat([x, condition], dim=1))

    def loss(self, scores, real):
        goal = torch.full_like(scores, float(real))
        return nn.functional.binary_cross_entropy_with_logits(scores, goal)

    def training_step(self, batch, batch_idx):
        batches.append(time.monotonic_ns())
        updates.append(batches[-1])
        x, labels = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(len(x), self.hparams.latent)

        self.toggle_optimizer(opt_d)
        loss_d = self.loss(self.judge(x, labels), True) + self.loss(self.judge(self(z, labels).detach(), labels), False)
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        updates.append(time.monotonic_ns())
        self.toggle_optimizer(opt_g)
        loss_g = self.loss(self.judge(self(z, labels), labels), True)
        opt_g.zero_grad()
        self.manual_backward(loss_g)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        self.log_dict({"g": loss_g, "d": loss_d}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        for scheduler in self.lr_schedulers():
            scheduler.step()

    def configure_optimizers(self):
        optimizers = [
            torch.optim.Adam(network.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
            for network in (self.generator, self.discriminator)
        ]
        return optimizers, [torch.optim.lr_scheduler.ExponentialLR(each, 0.9) for each in optimizers]


class Draw(pl.Callback):
    def on_train_epoch_end(self, trainer, module):
        module.eval()
        with torch.no_grad():
            curves = module(torch.randn(8, module.hparams.latent), torch.arange(8) % 4)
        module.train()
        print(f"epoch {trainer.current_epoch}:", {name: f"{v:.3f}" for name, v in trainer.callback_metrics.items()})
        print("".join(" .:-=+*#"[int(3.99 * (1 + y))] for y in curves[0].tolist()))


def curves(count, points=24, classes=4):
    labels = torch.randint(classes, (count,))
    t = torch.linspace(0, 6.28, points)
    return TensorDataset(0.9 * torch.sin((1 + labels[:, None]) * t + 0.3 * torch.randn(count, 1)), labels)


def main():
    pl.seed_everything(60)
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(
            max_epochs=3,
            accelerator="cpu",
            logger=False,
            callbacks=[Draw()],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
        )
        trainer.fit(ConditionalGAN(), DataLoader(curves(400), batch_size=20, shuffle=True))
    # As in other GANs: a batch is two updates, one of each network, and both levels are steps.
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"batch {ns}\n" for ns in batches)
        out.writelines(f"update {ns}\n" for ns in updates)


if __name__ == "__main__":
    main()
