# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a training run with Horovod's DistributedOptimizer on synthetic pictures.

    horovod_training.py --model small        a check: every step's loss and the trained weights, to the last bit
    horovod_training.py --model resnet50     a measurement: 25.6 million parameters, prints "result NAME VALUE" lines
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

CLASSES = {"small": 10, "resnet50": 1000}


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


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(CLASSES), default="small")
    for name, default in (("steps", 12), ("batch", 4), ("pixels", 32), ("warm-up", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--fp16", action="store_true", help="Horovod's compression of the gradients")
    return parser.parse_args()


def mean_of_ranks(value: float) -> float:
    return hvd.allreduce(torch.tensor([value], dtype=torch.float64), op=hvd.Average, name="mean").item()


def digest(model: nn.Module) -> str:
    found = hashlib.sha256()
    for value in model.state_dict().values():
        found.update(value.numpy().tobytes())
    return found.hexdigest()[:16]


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

    def tell(self, name: str, value) -> None:
        if not self.log and hvd.rank() == 0:
            print(f"result {name} {value}", flush=True)


def train(args: argparse.Namespace, results: Results) -> nn.Module:
    torch.manual_seed(1)
    model = {"small": small, "resnet50": resnet50}[args.model]()
    results.tell("parameters", sum(p.numel() for p in model.parameters()))
    compression = hvd.Compression.fp16 if args.fp16 else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        named_parameters=model.named_parameters(),
        compression=compression,
    )
    with results.check("broadcast of the parameters") as values:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        values.append(digest(model))
    torch.manual_seed(100 + hvd.rank())
    pictures = torch.randn(args.batch, 3, args.pixels, args.pixels)
    kinds = torch.randint(CLASSES[args.model], (args.batch,))
    seconds = []
    for step in range(args.warm_up + args.steps):
        with results.check(f"loss of step {step}") as values:
            begun = time.perf_counter()
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), kinds)
            loss.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - begun)
            values.append(loss.item().hex())
    step_s = mean_of_ranks(statistics.median(seconds[args.warm_up :]))
    results.tell("loss", mean_of_ranks(loss.item()))
    results.tell("images_per_s", f"{args.batch * hvd.size() / step_s:.3f}")
    results.tell("step_ms", f"{1000 * step_s:.1f}")
    return model


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(1)
    results = Results()
    hvd.init()
    model = train(args, results)
    with results.check("trained weights") as values:
        values.append(digest(model))
    hvd.shutdown()
    if results.log:
        results.log.finished()


if __name__ == "__main__":
    main()
