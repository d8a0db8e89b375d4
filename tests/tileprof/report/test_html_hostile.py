"""Names and values that try to break the page."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
import zlib

import pytest
from run_factory import NCU, make_case, make_metadata, make_run
from test_html_page import Page

from tileprof.report.html import flatten, render
from tileprof.report.packing import pack
from tileprof.report.source_view import highlight
from tileprof.report.text import breakable, shorten
from tileprof.store.records import CaseResult, Ceiling, Check, Metric, Provenance, Run, Suggestion, Timing, Unavailable

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\'"&\u2028\u202etxet-LTR\n{{ 7*7 }}'
NAMES = [HOSTILE, "\u202e" * 40, "x" * 10_000, "שלום עולם", "", "a\nb\tc", "'\"`${x}", "<!--", "]]>"]


def hostile_run(name: str) -> Run:
    location = {"file": name or "f", "line": 1, "column": 0, "text": name}
    operations = (
        {"id": 0, "kind": "kernel", "label": name, "parent": None, "reads": [], "writes": [], "location": location},
        {"id": 1, "kind": name, "label": name, "parent": 0, "reads": [name], "writes": [], "location": location},
    )
    provenance = Provenance("measured", name, name, name)
    metrics = tuple(
        Metric(metric, 5, "x", provenance, 1, name, name)
        for metric in ("shared.transactions", "shared.transactions_ideal", "executed.instructions", "global.sectors")
    )
    case = make_case(
        "scale_add", "float32", "sm80", id=name, kernel=name, target_name=name, target=name, args={name: name}, status="crashed",
        reason=name, operations=operations, sources={name or "f": f"{name}\n"}, metrics=metrics, notes=(name,), bundle=name,
        check=Check(False, 1.0, math.inf, 1e-3, 1e-3, name), timing=Timing((5.0,), name, 0, True),
        suggestions=(Suggestion(name, name, name, name, 1, 0, 1),),
    )  # fmt: skip
    return make_run(
        name=name, description=name, workload_file=name, version=name, started=name, machine={name: {name: [name, {name: name}]}},
        cases=(case,), unavailable=(Unavailable(name, name, name, name),),
        ceilings=(
            Ceiling(name, "dram.bytes_per_s", "", 1e9, provenance),
            Ceiling(name, "flops_per_s", "vector.float32", 1e11, provenance),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_stay_text(name: str) -> None:
    text = render(hostile_run(name))
    page = Page(text)  # fails where tags do not nest
    assert [a for tag, a, _ in page.elements if tag == "script"] == [{}, {"type": "text/plain", "id": "data"}, {}]
    assert not any(tag == "img" for tag, _, _ in page.elements)
    assert not any(key.startswith("on") for _, a, _ in page.elements for key in a)
    assert page.data["parts"]
    assert len(text) < 300_000
    assert "49" not in page.text_of("summary").split("Cases")[0]  # templates do not see names as templates


def test_hostile_names_are_still_there_as_text() -> None:
    page = Page(render(hostile_run("</script><b>")))
    assert "</script><b>" in page.text_of("summary")
    assert not any(tag == "b" and a for tag, a, _ in page.elements)


def test_names_are_isolated_from_their_surroundings() -> None:
    page = Page(render(hostile_run("\u202eevil")))
    assert any("\u202eevil" in "".join(text) for tag, _, text in page.elements if tag == "bdi")


def test_values_that_are_no_numbers() -> None:
    metadata = make_metadata("matmul_tiled", "float16", "cuda:sm_80")
    metadata |= {
        "occupancy": math.nan,
        "flops": {"float16": math.inf},
        "bytes_min": math.nan,
        "compile_seconds": {"a": math.inf},
    }
    metrics = tuple(
        Metric(metric, value, "x", NCU, 5, "A", "load")
        for metric in ("shared.transactions", "shared.transactions_ideal", "executed.instructions", "stall.samples")
        for value in (math.nan, math.inf, -math.inf)
    )
    timing = Timing((math.nan, math.inf), "clock", 0, False)
    case = make_case("matmul_tiled", "float16", "sm80", metadata=metadata, metrics=metrics, timing=timing)
    page = Page(render(make_run(cases=(case,))))
    json.dumps(page.data, allow_nan=False)
    assert "Nothing to plot on this target." in page.text_of("roofline")


def test_metadata_of_another_version_may_lack_fields() -> None:
    bare = make_case("matmul_tiled", "float16", "sm80", metadata={"target": "cuda:sm_80"}, metrics=())
    page = Page(render(make_run(cases=(bare,))))
    assert "registers a thread — absent" in page.rows("variants")


def test_extreme_ranges_of_the_roofline_draw() -> None:
    def case(id: str, flops: float, bytes_min: float) -> CaseResult:
        metadata = {"flops": {"float32": flops}, "bytes_min": bytes_min}
        return make_case("scale_add", "float32", "cpu", id=id, metadata=metadata)

    run = make_run(cases=(case("tiny", 1, 10**15), case("huge", 10**18, 1)))
    page = Page(render(run))
    assert len([1 for tag, a, _ in page.elements if tag == "text" and a.get("class") == "tick"]) < 60


def test_the_same_file_in_two_versions_is_shown_twice() -> None:
    one = make_case("scale_add", "float32", "cpu")
    two = dataclasses.replace(
        make_case("scale_add", "float16", "cpu"),
        sources={"elementwise.py": one.sources["elementwise.py"] + "# changed\n"},
    )
    page = Page(render(make_run(cases=(one, two))))
    assert len(page.data["sources"]) == 2


def test_many_cases_stay_small_each() -> None:
    cases = tuple(make_case("matmul_tiled", "float16", "cpu", id=f"case {i}@cpu", args={"i": i}) for i in range(300))
    assert len(render(make_run(cases=cases))) < 300 * 5_000


def test_what_is_packed_has_nothing_html_could_read() -> None:
    text = pack({"a": HOSTILE})
    assert re.fullmatch("[A-Za-z0-9+/=]+", text)
    assert json.loads(zlib.decompress(base64.b64decode(text))) == {"a": HOSTILE}
    with pytest.raises(ValueError, match="JSON"):
        pack(math.nan)


def test_shortened_names_keep_both_ends() -> None:
    assert shorten("a" * 80) == "a" * 80
    cut = shorten("head" + "x" * 10_000 + "@target", 40)
    assert len(cut) == 40
    assert cut.startswith("head")
    assert cut.endswith("@target")


def test_breakable_names_are_escaped() -> None:
    assert str(breakable("a_b[<i>_c]")) == "a_b<wbr>[&lt;i&gt;_c]"
    assert str(breakable("matrix_product_of_tiles[<i>]")) == "matrix<wbr>_product<wbr>_of<wbr>_tiles<wbr>[&lt;i&gt;]"


def test_flatten_nested_records() -> None:
    rows = flatten({"cpu": {"cores": 2, "memory_bytes": 1 << 30}, "gpus": [], "driver": None, "list": [1, {"a": 2}]})
    assert rows == [
        ("cpu.cores", "2"), ("cpu.memory", "1.07\N{NO-BREAK SPACE}GB"), ("gpus", "none"), ("driver", "—"), ("list", "1; a 2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["def f(:\n  '''open", "\x00", "a\fb\n c", "(\n", "x = f'{a!r:>{w}}'\r\ny = 1\r\n", ""]
)
def test_highlighting_keeps_every_character(text: str) -> None:
    lines = ["".join(token.text for token in line) for line in highlight(text)]
    assert "\n".join(lines) == text.replace("\r\n", "\n").removesuffix("\n")


def test_highlighting_names_kinds() -> None:
    line = highlight("def f(x): return 'a' + str(12)  # why\n")[0]
    assert [(t.text, t.kind) for t in line if t.kind] == [
        ("def", "k"),
        ("return", "k"),
        ("'a'", "s"),
        ("12", "n"),
        ("# why", "c"),
    ]


def test_a_case_of_code_that_is_none_and_samples_that_are_none() -> None:
    code = "\x00\x01</script>\n" + "y" * 10_000 + '\n//## File "x", line 99999999999999999999\n\t.amdgcn_target'
    sample = {
        "operation": 5,
        "access": "ldmatrix",
        "width_bits": 128,
        "lanes": [0, 1],
        "before": [0, 128],
        "after": [0, 16],
    }
    for changed in (sample, {**sample, "lanes": []}, {**sample, "access": "none"}, {**sample, "before": "x"}):
        suggestion = Suggestion("A", "padding", "t", "p", 1, 0, 1, changed)
        case = make_case("matmul_tiled", "float16", "sm80", assembly=code, generated=code, suggestions=(suggestion,))
        Page(render(make_run(cases=(case,))))
