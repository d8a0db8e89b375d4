"""One search, from configurations to the best kernel and the record of all."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilelang_min.driver.kernel import Kernel
from tilelang_min.errors import TuningError
from tilelang_min.runtime.gpu import torch_on
from tilelang_min.runtime.measuring import measure_gpu, measure_host
from tilelang_min.targets import Target
from tilelang_min.tune.candidates import Candidate, Make, choose, compile_all, load_compiler
from tilelang_min.tune.checking import Checker, Tolerance
from tilelang_min.tune.given import supply_type
from tilelang_min.tune.inputs import Inputs, as_array
from tilelang_min.tune.records import Outcome, Tuned
from tilelang_min.tune.settings import Settings
from tilelang_min.tune.timing import Timing


def search(
    configs: list[dict[str, Any]],
    make: Make,
    target: Target,
    device: str | None,
    settings: Settings,
    given: tuple[Any, ...] | None,
) -> tuple[Tuned, Kernel]:
    """The best of ``configs``, which ``make`` compiles, and what became of each.

    ``device`` is the device that can be measured on, None where there is none; ``given`` are the author's inputs.  Raises
    TuningError where none works, with the reason of each.
    """
    seconds: dict[str, float] = {}
    said = _speaker(settings.verbose)
    start = time.perf_counter()
    with _step(seconds, "compile"):
        load_compiler(target)
        results, candidates = compile_all(configs, make, device, settings, given, said)
    if not candidates:
        raise TuningError(_nothing(results, "compiles"), remedy=_remedy(results))
    notes: list[str] = []
    if device is None:
        ordered = _by_prediction(candidates, notes)
        reference = None
    else:
        with _step(seconds, "measure"):
            chosen = choose(candidates) if settings.prune else candidates
            ordered, reference = _measured(chosen, target, settings, given, said, notes)
            left_out = [each for each in candidates if each not in chosen]
            if not ordered and left_out:  # a prediction says nothing of who works
                for each in left_out:
                    each.outcome.outcome, each.outcome.reason = "measured", ""
                ordered, reference = _measured(left_out, target, settings, given, said, notes)
        if not ordered:
            raise TuningError(_nothing(results, "works"), remedy=_remedy(results))
    best = ordered[0]
    best.outcome.outcome, best.outcome.reason = "best", ""
    for each in ordered[1:]:
        each.outcome.outcome = "predicted" if device is None else "measured"
    outcome = best.outcome
    seconds["total"] = time.perf_counter() - start
    tuned = Tuned(
        config=outcome.config,
        latency=outcome.predicted_ms if device is None else outcome.measured_ms,
        measured=device is not None,
        target=target.name,
        device=device,
        results=results,
        ref_latency=reference,
        seconds={name: round(value, 3) for name, value in seconds.items()},
        notes=notes,
    )
    return tuned, best.kernel


def _by_prediction(candidates: list[Candidate], notes: list[str]) -> list[Candidate]:
    """The best predicted first, for a machine without the device."""
    heavy = [each for each in candidates if each.outcome.predicted_ms is None]
    if len(heavy) == len(candidates):
        raise TuningError(
            f"there is no device here for {candidates[0].kernel.target.name}, and no time could be predicted",
            remedy="search on a machine that has the device; what a prediction needs is in docs/tuning.md",
        )
    notes.append("Chosen by prediction alone: nothing was run.")
    for each in heavy:
        each.outcome.outcome, each.outcome.reason = "ruled out", each.outcome.reason or "no time could be predicted"
    return choose([each for each in candidates if each not in heavy], least=1)


def _measured(
    candidates: list[Candidate],
    target: Target,
    settings: Settings,
    given: tuple[Any, ...] | None,
    said: Callable[[str], None],
    notes: list[str],
) -> tuple[list[Candidate], float | None]:
    """Candidates that were timed to the end, the best first, and the time of the reference in milliseconds."""
    on_gpu = target.kind != "cpu"
    with tempfile.TemporaryDirectory(prefix="tilelang-tune-") as name:
        inputs = Inputs(
            Path(name),
            kind=supply_type(settings.supply_type),
            supply=settings.supply_prog,
            given=given,
            on_gpu=on_gpu,
        )
        checker, latency = None, None
        if not settings.skip_check:
            wanted = None
            if settings.ref_prog is not None:
                wanted, latency = _reference(settings, candidates[0].kernel, inputs, target)
            tolerance = Tolerance(settings.rtol, settings.atol, settings.max_mismatched_ratio)
            checker = Checker(tolerance, wanted, settings.manual_check_prog)
        timing = Timing(Path(name), inputs, checker, settings, _ordinal(target))
        ordered = timing.measure(candidates, said)
        notes += [f"Times: {how}." for how in sorted(timing.how)]
        return ordered, latency


def _ordinal(target: Target) -> int | None:
    """torch's current GPU, where torch uses one."""
    torch = None if target.kind == "cpu" else torch_on(target.kind)
    return None if torch is None else int(torch.cuda.current_device())


def _reference(settings: Settings, kernel: Kernel, inputs: Inputs, target: Target) -> tuple[list[Any], float]:
    """What ``ref_prog`` computes, as arrays in the kernel's types, and its time in milliseconds."""
    program = settings.ref_prog
    assert program is not None
    tensors = inputs.tensors(kernel.parameters, kernel.out_idx)
    read = [each for each, parameter in zip(tensors, kernel.parameters, strict=True) if parameter.access != "out"]
    written = [parameter for parameter in kernel.parameters if parameter.access != "in"]
    try:
        made = program(*read)
    except Exception as error:
        raise TuningError(
            f"ref_prog failed: {type(error).__name__}: {error}",
            remedy=f"it is called with {', '.join(p.name for p in kernel.parameters if p.access != 'out')} and returns "
            f"{', '.join(p.name for p in written)}",
        ) from error
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    if len(outputs) != len(written) or any(each is None for each in outputs):
        raise TuningError(
            f"ref_prog returned {len([each for each in outputs if each is not None])} tensors, the kernel writes {len(written)}",
            remedy=f"return {', '.join(p.name for p in written)}",
        )
    wanted = [as_array(each, parameter.dtype) for each, parameter in zip(outputs, written, strict=True)]
    tensor = read[0] if read else None
    on_gpu = target.kind != "cpu" and getattr(getattr(tensor, "device", None), "type", "cpu") == "cuda"
    if on_gpu:
        measured = measure_gpu(lambda: program(*read), kind=target.kind, warmup=settings.warmup, rep=settings.rep)
    else:
        measured = measure_host(lambda: program(*read), warmup=min(settings.warmup, 1), rep=min(settings.rep, 5))
    return wanted, measured.median_ms


def _nothing(results: Sequence[Outcome], what: str) -> str:
    """The message where there is no kernel: every configuration with its reason, equal reasons together."""
    reasons: dict[str, list[Outcome]] = {}
    for each in results:
        reasons.setdefault(f"{each.outcome}: {each.reason}", []).append(each)
    lines = [f"none of {len(results)} configurations {what}"]
    for reason, those in reasons.items():
        lines += [f"  {each.number}: {each.config}" for each in those]
        lines += [f"    {line}" for line in reason.splitlines()]
    return "\n".join(lines)


def _remedy(results: Sequence[Outcome]) -> str:
    if any(each.outcome == "timed out" for each in results):
        return "give timeout= more seconds, or configurations that fit"
    if len(results) > 1 and len({each.reason for each in results}) == 1:
        return "all say the same: look at the kernel and at the call rather than at the configurations"
    return "give configurations that fit; compile one of them by itself to see more"


@contextmanager
def _step(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = time.perf_counter() - start


def _speaker(verbose: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        if verbose:
            print(f"tilelang: {text}", file=sys.stderr, flush=True)

    return say
