"""Examples in the guides say what really comes out."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import click
import pytest

from tilelang_min.language.constructs import PLANNED
from tileprof.cli.main import VERBS, cli, main

DOCS = Path(__file__).resolve().parents[2] / "docs"
README = DOCS.parent / "README.md"


@pytest.mark.parametrize("name", ["bank-conflicts.md"])
def test_sessions_of_python(name: str) -> None:
    result = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 5
    assert result.failed == 0


def test_the_picture_of_banks(capsys: pytest.CaptureFixture[str]) -> None:
    """Up to the bank at which the guide breaks lines off."""
    text = (DOCS / "bank-conflicts.md").read_text()
    (command, shown), *rest = re.findall(r"```console\n\$ tileprof (.*)\n((?:.*\n)*?)```", text)
    assert not rest
    arguments = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', command)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    for line, real in zip(shown.splitlines(), printed):
        assert real.startswith(line.removesuffix(" ...").rstrip()), line


def first_python(page: Path) -> str:
    found = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_kernel_of_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands there: it runs, and prints what its comments say."""
    source = first_python(README)
    (tmp_path / "readme.py").write_text(source)
    runpy.run_path(str(tmp_path / "readme.py"))
    registers, *table = capsys.readouterr().out.splitlines()
    said = re.search(r"registers_per_thread\) +# (\d+)", source)
    assert said is not None
    assert registers == said[1]
    assert "262,144 extra transactions a launch" in table[0]
    assert any("T.gemm(A_shared, B_shared, C_local)" in line and "ldmatrix" in line for line in table)


def test_the_kernel_of_the_language(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(
        "import tilelang_min as tilelang\nimport tilelang_min.language as T\n" + first_python(DOCS / "language.md")
    )
    kernel = runpy.run_path(str(tmp_path / "scale.py"))["kernel"]
    assert (kernel.name, kernel.target.name) == ("scale", "hip:gfx942")


def test_names_that_are_not_there_yet() -> None:
    text = (DOCS / "language.md").read_text()
    rows = dict(re.findall(r"^\| `T\.(\w+)` \| (.*) \|$", text[text.index("## Not yet") :], re.MULTILINE))
    assert rows == PLANNED


COMMANDS = [
    (page.name, line)
    for page in (README, *sorted(DOCS.glob("*.md")))
    for line in re.findall(
        r"(?:^    |^\$ |run: |&& |`)(tileprof [a-z]+(?: [^`\n#|]*)?)", page.read_text(), re.MULTILINE
    )
]


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_in_the_guides(page: str, command: str) -> None:
    """Verbs and options that are there; workloads that are there."""
    verb, *words = re.sub(r"[\[\]]", " ", command).split()[1:]
    assert verb in VERBS, page
    found = cli.get_command(click.Context(cli), verb)
    assert found is not None
    known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word.startswith("-"):
            assert word in known, page
        if word.startswith("workloads/"):
            assert (README.parent / word).is_file(), page


def test_functions_of_the_example_workload() -> None:
    text = (DOCS / "workload.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    for file, function in re.findall(r"(kernels/\w+\.py):(\w+)", example[1]):
        source = (README.parent / "workloads" / file).read_text()
        assert re.search(rf"^def {function}\(", source, re.MULTILINE), f"{file}:{function}"
