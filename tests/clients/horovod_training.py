# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a training run with Horovod's DistributedOptimizer on synthetic pictures or texts.

    horovod_training.py --model small        a check: every step's loss and the trained weights, to the last bit
    horovod_training.py --model resnet50     a measurement: 25.6 million parameters, prints "result NAME VALUE" lines
    horovod_training.py --model transformer  the same of 3.7 million parameters, that read texts

A measurement also prints each rank's losses, in hexadecimal, and "check passed" where all ranks have the same weights.
"""
from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import statistics
import time

import horovod.torch as hvd
import torch
from torch import nn

CLASSES = {"small": 10, "resnet50": 1000, "transformer": 1000}
TEXT_LENGTH = 64  # tokens


class Bottleneck(nn.Module):
    """He et al., Deep residual learning for image recognition, 2016, figure 5, right."""

    def __init__(self, inside: int, width: int, stride: int):
        super().__init__()
        outside = 4 * width
        self.body = nn.Sequential(
            *convolution(inside, width, 1),
            nn.ReLU(),
            *convolution(width, width, 3, stride),
            nn.ReLU(),
            *convolution(width, outside, 1),
        )
        changes = stride != 1 or inside != outside
        self.shortcut = nn.Sequential(*convolution(inside, outside, 1, stride)) if changes else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def convolution(inside: int, outside: int, kernel: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outside)


def resnet50() -> nn.Module:
    layers = [*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inside, width, stride if block == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, CLASSES["resnet50"]))


def small() -> nn.Module:
    return nn.Sequential(
        *convolution(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        *convolution(16, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, CLASSES["small"]),
    )  # fmt: skip


class Transformer(nn.Module):
    """Vaswani et al., Attention is all you need, 2017, figure 1, left, with a mask: it predicts the next token."""

    def __init__(self, width: int = 256, layers: int = 4, heads: int = 4):
        super().__init__()
        tokens = CLASSES["transformer"]
        self.embedding = nn.Embedding(tokens, width)
        self.place = nn.Parameter(torch.randn(1, TEXT_LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.output = nn.Linear(width, tokens)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(TEXT_LENGTH))

    def forward(self, texts):
        inside = self.layers(self.embedding(texts) + self.place, self.mask)
        return self.output(inside).transpose(1, 2)  # cross_entropy takes classes before places


MODELS = {"small": small, "resnet50": resnet50, "transformer": Transformer}


def examples(args: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and the classes that they belong to."""
    if args.model == "transformer":
        texts = torch.randint(CLASSES[args.model], (args.batch, TEXT_LENGTH + 1))
        return texts[:, :-1], texts[:, 1:]
    pictures = torch.randn(args.batch, 3, args.pixels, args.pixels)
    return pictures, torch.randint(CLASSES[args.model], (args.batch,))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(CLASSES), default="small")
    for name, default in (("steps", 12), ("batch", 4), ("pixels", 32), ("warm-up", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--fp16", action="store_true", help="Horovod's compression of the gradients")
    return parser.parse_args()


def mean_of_ranks(value: float) -> float:
    return hvd.allreduce(torch.tensor([value], dtype=torch.float64), op=hvd.Average, name="mean").item()


def digest(tensors) -> str:
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()[:16]


def state_digest(model: nn.Module) -> str:
    return digest(model.state_dict().values())


class Results:
    """Lines of the measurement, from rank 0, or checks in the rank's log."""

    def __init__(self):
        self.log = None
        if "CLIENTS_LOG" in os.environ:
            import rank_log

            self.log = rank_log.Log()

    @contextlib.contextmanager
    def check(self, name: str):
        values: list[str] = []
        if self.log:
            self.log.begin(name)
        yield values
        if self.log:
            self.log.end(name, "pass", " ".join(values))

    def tell(self, *words) -> None:
        if not self.log and hvd.rank() == 0:
            print(*words, flush=True)


def train(args: argparse.Namespace, results: Results) -> nn.Module:
    torch.manual_seed(1)
    model = MODELS[args.model]()
    results.tell("result parameters", sum(p.numel() for p in model.parameters()))
    compression = hvd.Compression.fp16 if args.fp16 else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9),
        named_parameters=model.named_parameters(),
        compression=compression,
    )
    with results.check("broadcast of the parameters") as values:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        values.append(state_digest(model))
    torch.manual_seed(100 + hvd.rank())
    inputs, classes = examples(args)
    seconds, losses = [], []
    for step in range(args.warm_up + args.steps):
        with results.check(f"loss of step {step}") as values:
            begun = time.perf_counter()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), classes)
            loss.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - begun)
            losses.append(loss.item())
            values.append(loss.item().hex())
    if not results.log:
        tell_results(args, results, model, losses, statistics.median(seconds[args.warm_up :]))
    return model


def tell_results(args, results: Results, model: nn.Module, losses: list[float], seconds: float) -> None:
    for rank, numbers in enumerate(hvd.allgather_object(losses)):
        results.tell(f"losses of rank {rank} of {hvd.size()}:", *(number.hex() for number in numbers))
    is_same = len(set(hvd.allgather_object(digest(model.parameters())))) == 1
    results.tell("check passed" if is_same else "check failed: ranks have different weights")
    step_s = mean_of_ranks(seconds)
    results.tell("result loss", mean_of_ranks(losses[-1]))
    results.tell("result images_per_s", f"{args.batch * hvd.size() / step_s:.3f}")
    results.tell("result step_s", f"{step_s:.6f}")


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(1)
    results = Results()
    hvd.init()
    model = train(args, results)
    with results.check("trained weights") as values:
        values.append(state_digest(model))
    hvd.shutdown()
    if results.log:
        results.log.finished()


if __name__ == "__main__":
    main()
