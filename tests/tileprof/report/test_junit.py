"""junit.xml: valid against the published schema whatever the names are."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from run_factory import make_case, make_run

from tileprof.analyse.verdicts import verdicts
from tileprof.report import check_text, junit
from tileprof.store.records import Run

SCHEMAS = Path(__file__).resolve().parents[2] / "data" / "schemas"
HOSTILE = "</testcase>]]>&\"'\x00\x1b\ud800\u202e\n" + "y" * 10_000


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))


@pytest.mark.parametrize(
    "run",
    [
        make_run(),
        make_run(cases=()),
        make_run(
            name=HOSTILE,
            cases=(make_case("matmul_tiled", "float16", "sm80", id=HOSTILE, status="crashed", reason=HOSTILE),),
        ),
    ],
    ids=["quickstart", "empty", "hostile"],
)
def test_is_valid(run: Run, schema: xmlschema.XMLSchema) -> None:
    schema.validate(junit.render(run, verdicts(run)))


def test_outcomes_are_what_readers_of_results_expect() -> None:
    limits = {"spill.store_bytes": {"max": 0}, "registers.per_thread": {"max": 1}, "l2.hit_rate": {"min": 0.5}}
    from tileprof.metrics import metadata_metrics

    made = make_case("matmul_tiled", "float16", "sm80")
    made = make_case(
        "matmul_tiled", "float16", "sm80", checks=limits, metrics=tuple(metadata_metrics(made.metadata or {}))
    )
    run = make_run(cases=(made,))
    suite = ElementTree.fromstring(junit.render(run, verdicts(run))).find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped", "errors")} == {
        "tests": "4", "failures": "1", "skipped": "1", "errors": "0",
    }  # fmt: skip
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "118 registers (static), max 1"


def test_markdown_says_the_worst_first_and_escapes() -> None:
    run = make_run(cases=(make_case("matmul_tiled", "float16", "sm80", id="<b>|x", status="crashed", reason="boom"),))
    text = check_text.render(run, verdicts(run))
    assert text.startswith("# quickstart: failed")
    assert "&lt;b&gt;\\|x" in text
