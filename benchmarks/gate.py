"""The timing gate on recorded H200 samples with slowdowns injected: how often each rule alarms, and how often it finds them.

    python benchmarks/gate.py [--trials 2000] [--figure docs/gate.svg]

Rounds are drawn from ``tests/data/nvidia/h200_times.json``, two runs of twelve kernels.  A round is made of blocks of
ten consecutive samples of one recording, so that what a device does for a moment stays in it; which of the two recordings a
round comes from is random, so that rounds differ as days do.  Both sides of a round see the same recording: they were measured
in turns.  For the rules that compare two separate measurements each side draws its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tileprof.analyse.gate import FLOOR, SLOWER, judge

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests/data/nvidia/h200_times.json"
ROUNDS, SAMPLES, BLOCK = 5, 50, 10
Samples = np.ndarray[tuple[int], np.dtype[np.float64]]
Trial = Callable[[np.random.Generator, list[Samples], float], bool]


def recorded() -> dict[str, list[Samples]]:
    """Recordings (two runs, 50 samples each) by case."""
    cases = json.loads(RECORDED.read_text())["cases"]
    return {name: [np.asarray(run, float) for run in runs] for name, runs in cases.items()}


def consecutive(generator: np.random.Generator, run: Samples, count: int) -> Samples:
    """``count`` samples in blocks of consecutive ones, each block begun anywhere in the recording."""
    starts = generator.integers(len(run) - BLOCK + 1, size=-(-count // BLOCK))
    return np.concatenate([run[start : start + BLOCK] for start in starts])[:count]


def in_turns(generator: np.random.Generator, runs: list[Samples], slowdown: float) -> bool:
    """Whether the rule of ``tileprof check`` says that head is slower."""
    head, base = [], []
    for _ in range(ROUNDS):
        run = runs[int(generator.integers(len(runs)))]
        base.append(list(consecutive(generator, run, SAMPLES)))
        head.append(list(consecutive(generator, run, SAMPLES) * (1 + slowdown)))
    change = judge(head, base)
    return change is not None and change.outcome == SLOWER


def _separate(generator: np.random.Generator, runs: list[Samples], slowdown: float) -> tuple[Samples, Samples]:
    base = consecutive(generator, runs[int(generator.integers(len(runs)))], SAMPLES)
    head = consecutive(generator, runs[int(generator.integers(len(runs)))], SAMPLES)
    return head * (1 + slowdown), base


def medians(generator: np.random.Generator, runs: list[Samples], slowdown: float) -> bool:
    """Two separate measurements, their medians compared with the same floor."""
    head, base = _separate(generator, runs, slowdown)
    return bool(np.median(head) > np.median(base) * (1 + FLOOR))


def rank_test(generator: np.random.Generator, runs: list[Samples], slowdown: float) -> bool:
    """Two separate measurements, Mann-Whitney's U with p < 0.002 (normal approximation with ties) and no floor."""
    head, base = _separate(generator, runs, slowdown)
    both = np.concatenate([head, base])
    _, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n, m = len(head), len(base)
    u = ranks[:n].sum() - n * (n + 1) / 2
    ties = (counts**3 - counts).sum() / ((n + m) * (n + m - 1))
    deviation = np.sqrt(n * m / 12 * (n + m + 1 - ties))
    return bool(deviation > 0 and (u - n * m / 2) / deviation > 2.878)


RULES: dict[str, Trial] = {
    "5 rounds in turns, all slower, median > 3 %": in_turns,
    "two runs, medians, > 3 %": medians,
    "two runs, Mann-Whitney p < 0.002": rank_test,
}


def rate(rule: Trial, slowdown: float, trials: int, seed: int = 0) -> dict[str, float]:
    """Share of trials in which a rule alarms, by case."""
    generator = np.random.default_rng(seed)
    return {
        name: sum(rule(generator, runs, slowdown) for _ in range(trials)) / trials for name, runs in recorded().items()
    }


def draw(path: Path, trials: int) -> None:
    """The rates over the slowdown: mean of the kernels as a line, the worst and the best as a band."""
    import matplotlib.pyplot as plt

    slowdowns = np.arange(0, 0.0801, 0.005)
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for (name, rule), colour in zip(RULES.items(), ("#0a5cc7", "#c2410c", "#6a3cc2")):
        rates = [list(rate(rule, slowdown, trials).values()) for slowdown in slowdowns]
        axes.plot(100 * slowdowns, [100 * np.mean(r) for r in rates], color=colour, label=name)
        axes.fill_between(
            100 * slowdowns, [100 * min(r) for r in rates], [100 * max(r) for r in rates], color=colour, alpha=0.13
        )
    axes.set(xlabel="injected slowdown, %", ylabel="alarms, % of trials", xlim=(0, 8), ylim=(-2, 102))
    axes.set_title("Twelve kernels recorded on an H200: mean, worst and best kernel", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path)


def main() -> None:
    """Print the table, and draw the figure where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    for name, rule in RULES.items():
        print(name)
        for slowdown in (0.0, 0.02, 0.03, 0.05, 0.08):
            rates = rate(rule, slowdown, options.trials)
            worst = (max if slowdown == 0 else min)(rates, key=rates.__getitem__)
            print(f"  +{slowdown:.0%}: {np.mean(list(rates.values())):7.2%} of trials; {rates[worst]:7.2%} on {worst}")
    if options.figure:
        draw(options.figure, max(100, options.trials // 10))


if __name__ == "__main__":
    main()
