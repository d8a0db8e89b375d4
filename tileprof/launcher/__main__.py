"""``python -m tileprof.launcher``: serves launch requests over standard input, or launches one bundle under a profiler.

Without arguments: requests as JSON lines, ``{"do": "case", ...}`` or ``{"do": "ceilings", "targets": [...]}``, each
answered by messages that end with ``done`` or ``failed``.  With ``JOB.json``, as a profiler runs it: launches the case of that
file ``launches`` times and ends, or does so for each of a ``sequence``, with a line in the file ``journal`` before each; or, where
it has ``cases``, records one launch of each (``recorded.py``).
"""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tilelang_min as tilelang
from tileprof.launcher.channel import Channel, open_channel
from tileprof.launcher.jobs import SEQUENCE_FAILED, CaseRunner, run_case
from tileprof.launcher.ranges import named
from tileprof.launcher.recorded import record_cases


def serve(channel: Channel) -> None:
    """Answer requests until the parent closes the channel."""
    channel.send("ready")
    while (request := channel.receive()) is not None:
        try:
            if request["do"] == "ceilings":
                _send_ceilings(channel, request["targets"])
            else:
                run_case(request, channel.send)
            channel.send("done")
        except tilelang.errors.TileLangError as error:
            channel.send("failed", reason=str(error))
        except MemoryError:
            channel.send("failed", reason="not enough memory for the arrays of this case")
        except Exception as error:  # the case fails, the next one has its chance
            traceback.print_exc()
            channel.send("failed", reason=f"{type(error).__name__}: {error}")


def _send_ceilings(channel: Channel, targets: list[str]) -> None:
    from tileprof.collect.ceilings import ceilings

    channel.send("stage", stage="measuring ceilings")
    for target in targets:
        channel.send("ceilings", records=[asdict(ceiling) for ceiling in ceilings(target)])


def launch_file(path: Path) -> None:
    """Launch the cases described in a file, as a profiler's child: no messages, no checks, no timing."""
    job: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if "cases" in job:
        record_cases(job["cases"], Path(job["journal"]))
        return
    for number, one in enumerate(job.get("sequence", ())):
        with Path(job["journal"]).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"case": number, "state": "begun"}) + "\n")
        try:
            launch_job(one)
        except (tilelang.errors.TileLangError, OSError, MemoryError):  # the others have their chance
            traceback.print_exc()
            print(SEQUENCE_FAILED, file=sys.stderr)
    if "sequence" not in job:
        launch_job(job)


def launch_job(job: dict[str, Any]) -> None:
    """Launch a case ``launches`` times, each in a range with its name and number."""
    runner = CaseRunner(job, checked=False)
    for number in range(int(job["launches"])):
        with named(f"{job.get('name', 'case')} #{number}"):
            runner.launch()


def main(arguments: list[str]) -> int:
    """Entry of the child process."""
    if arguments:
        launch_file(Path(arguments[0]))
        return 0
    serve(open_channel())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
