"""A child process answers, can be paused, and whatever it does leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tileprof.execute.child as child_module
from tileprof.execute.child import Child, ChildDied, ChildTimeout, run_command, timed_command

Make = Callable[[str], Child]

PRELUDE = """
import os, signal, subprocess, sys, time
from tileprof.launcher.channel import open_channel
channel = open_channel()
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Starts a child that runs the given code with an open channel."""
    children: list[Child] = []
    monkeypatch.syspath_prepend(str(tmp_path))
    environment = child_module.environment()
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    monkeypatch.setattr(child_module, "environment", lambda mark="": environment)

    def start(code: str) -> Child:
        name = f"child_{len(children)}"
        (tmp_path / f"{name}.py").write_text(PRELUDE + textwrap.dedent(code))
        children.append(Child(name, tmp_path / "log"))
        return children[-1]

    yield start
    for child in children:
        child.discard()


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Callable[[], bool], limit_s: float = 10.0) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_messages_go_both_ways_and_prints_do_not_mix_with_them(make: Make, tmp_path: Path) -> None:
    child = make("""
        while (request := channel.receive()) is not None:
            print("chatter", flush=True)
            os.write(1, b"raw chatter\\n")
            channel.send("answer", twice=request["x"] * 2, value=float("inf"))
    """)
    for x in (3, 21):
        child.send({"x": x})
        assert child.receive(30) == {"type": "answer", "twice": 2 * x, "value": float("inf")}
    child.close()
    assert (tmp_path / "log").read_text().count("chatter") == 4


def test_a_crash_is_described(make: Make) -> None:
    child = make("print('last words', file=sys.stderr)\nos.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(ChildDied) as caught:
        child.receive(30)
    assert caught.value.description == "was ended by SIGSEGV: an access outside its memory"
    assert "last words" in caught.value.tail
    with pytest.raises(ChildDied, match="ended with status 7"):
        make("sys.exit(7)").receive(30)


def test_a_hang_is_noticed_and_its_whole_group_is_killed(make: Make) -> None:
    child = make("""
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        channel.send("started", pid=grandchild.pid)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    """)
    pid = child.receive(30)["pid"]
    start = time.monotonic()
    with pytest.raises(ChildTimeout, match=r"no answer for 0\.3 s"):
        child.receive(0.3)
    assert time.monotonic() - start < 5
    assert alive(pid)
    child.kill()
    assert wait_until(lambda: not alive(pid))


def test_paused_time_does_not_count(make: Make) -> None:
    child = make("channel.send('ready')\ntime.sleep(0.4)\nchannel.send('done')\ntime.sleep(600)")
    child.receive(30)
    child.pause()
    resumer = threading.Timer(1.5, child.resume)
    resumer.start()
    start = time.monotonic()
    assert child.receive(1.2)["type"] == "done"
    assert time.monotonic() - start >= 1.4
    resumer.join()
    child.pause()
    child.kill()  # a paused group can be killed


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    code = f"""
        import os, sys, time
        from pathlib import Path
        from tileprof.execute.child import Child
        child = Child("tileprof.launcher", Path({str(tmp_path / "log")!r}))
        child.receive(60)
        print(child._process.pid, flush=True)
        time.sleep(600)
    """
    import subprocess

    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=child_module.environment()
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not alive(pid))


def test_a_command_is_limited_and_stopped(tmp_path: Path) -> None:
    go = threading.Event()
    log = tmp_path / "log"
    assert run_command([sys.executable, "-c", "print('out'); raise SystemExit(5)"], 30, log, go) == 5
    assert log.read_text() == "out\n"
    forever = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(ChildTimeout):
        run_command(forever, 0.3, log, go)
    threading.Timer(0.3, go.set).start()
    start = time.monotonic()
    assert run_command(forever, 30, log, go) is None
    assert time.monotonic() - start < 5


def test_a_command_is_timed_to_its_end(tmp_path: Path) -> None:
    """Not to the next look at it: seen in steps that double, 70 ms would be 100."""
    times = []
    for _ in range(8):
        ended = timed_command(["sleep", "0.07"], 30, tmp_path / "log", threading.Event())
        assert ended is not None
        assert ended.status == 0
        times.append(ended.wall_ns / 1e6)
    assert 70 <= min(times) < 95


def test_without_a_handle_a_command_still_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_process_handle", lambda pid: None)
    ended = timed_command(["sh", "-c", "sleep 0.15; exit 3"], 30, tmp_path / "log", threading.Event())
    assert ended is not None
    assert (ended.status, ended.wall_ns > 150e6) == (3, True)
