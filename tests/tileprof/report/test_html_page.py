"""The HTML page: order of sections, figures and their formats, what is absent, size, policy, no network."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path

import pytest
from run_factory import NCU, make_case, make_metadata, make_run
from unpacked import data_of, unpacked

from tileprof.errors import StoreError
from tileprof.report.html import render, write
from tileprof.store.reader import read_run
from tileprof.store.records import Metric, Run, Suggestion

PUBLISHED = Path(__file__).resolve().parents[3] / "reports"
RECORDED = PUBLISHED / "h200-quickstart/run.sqlite"
VOID = {"meta", "link", "br", "input", "wbr", "img"}
NB = "\N{NO-BREAK SPACE}"


class Page(HTMLParser):
    """A page, unpacked, as elements with their text; fails on tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open: list[int] = []
        self.data = data_of(text)
        self.feed(unpacked(text))
        self.close()
        assert not self.open, f"left open: {[self.elements[i][0] for i in self.open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th", "br"):
            self.handle_data(" ")
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        last = self.elements[self.open.pop()][0]
        assert last == tag, f"</{tag}> closes <{last}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        for index in self.open:
            self.elements[index][2].append(data)

    def all(self, tag: str, **wanted: str) -> list[str]:
        """Texts of the elements of a tag whose attributes have these values."""
        names = {key.rstrip("_"): value for key, value in wanted.items()}
        return [
            " ".join("".join(text).split(" ")).strip()
            for found, attributes, text in self.elements
            if found == tag and all(attributes.get(key) == value for key, value in names.items())
        ]

    def text_of(self, id: str) -> str:
        return next("".join(text) for _, attributes, text in self.elements if attributes.get("id") == id)

    def rows(self, id: str) -> list[str]:
        """Texts of the table rows within an element."""
        start = next(i for i, (_, attributes, _) in enumerate(self.elements) if attributes.get("id") == id)
        found = []
        for tag, attributes, text in self.elements[start + 1 :]:
            if tag in ("section", "header") and attributes.get("id"):
                break
            if tag == "tr":
                found.append(" ".join("".join(text).replace(NB, " ").split()))
        return found


@pytest.fixture(scope="module")
def html(run: Run) -> str:
    return render(run)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_sections_stand_in_the_order_of_the_questions(page: Page) -> None:
    ids = [a["id"] for tag, a, _ in page.elements if tag in ("section", "header") and a.get("id")]
    assert ids == [
        "summary", "findings", "roofline", "flame", "conflicts", "global", "counters", "variants", "source",
        "unmeasured", "provenance", "machine",
    ]  # fmt: skip
    links = [a["href"] for tag, a, _ in page.elements if tag == "a" and str(a.get("href", "")).startswith("#")]
    assert [link for link in links if link != "#main"] == [f"#{id}" for id in ids]


def test_size_of_a_quickstart_with_its_code(run: Run) -> None:
    codes = [(c.assembly, c.generated) for c in read_run(PUBLISHED / "h200-gemm/run.sqlite").cases if c.assembly]
    pairs = zip(run.cases, cycle(codes), strict=False)
    cases = [dataclasses.replace(case, assembly=one, generated=other) for case, (one, other) in pairs]
    text = render(dataclasses.replace(run, cases=tuple(cases)))
    code = data_of(text)["code"]
    assert code["left"]  # the code is more than the page takes
    assert 240_000 < len(text.encode()) < 300_000


def test_size_of_a_dozen_cases_with_all_their_counters() -> None:
    assert len(render(read_run(RECORDED)).encode()) < 300_000


@pytest.mark.parametrize(
    "page", sorted(PUBLISHED.glob("*/*.html")), ids=lambda page: page.parent.name + "/" + page.stem
)
def test_size_of_published_pages(page: Path) -> None:
    assert page.stat().st_size < 300_000


def test_first_answers_stand_in_the_page_and_the_rest_is_packed(html: str) -> None:
    plain = {
        id: html[html.index(f'id="{id}"') :].partition("</section>")[0] for id in ("roofline", "conflicts", "source")
    }
    assert "<table>" in plain["roofline"]
    assert "6,291,456" in plain["conflicts"]
    assert "Source with figures per line: packed in this file; shown by JavaScript" in plain["source"]
    assert "T.gemm" in "".join(data_of(html)["parts"])


def test_size_of_one_kernel_with_all_its_counters_and_code() -> None:
    run = read_run(RECORDED)
    for case in run.cases[4:6]:
        assert len(render(dataclasses.replace(run, cases=(case,))).encode()) < 300_000


def test_rendering_is_repeatable(run: Run, html: str) -> None:
    assert render(run) == html


def test_nothing_outside_the_file_is_named(html: str, page: Page) -> None:
    for _, attributes, _ in page.elements:
        for name in ("src", "href", "action", "data", "poster", "srcset", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith("#") or value == "data:,", (name, value)
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes), attributes
    assert not re.search(r"@import|url\(|https?://|//[a-z0-9-]+\.[a-z]", unpacked(html).replace("http-equiv", ""))


def test_policy_allows_these_scripts_and_nothing_else(html: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    rules = dict(part.strip().split(" ", 1) for part in policy[1].replace("&#39;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy[1]
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in texts}
        assert hashes == set(rules[rule].split())
    assert html.count("<script") == 3  # theme, data, page


def test_summary_says_what_ran_where(page: Page) -> None:
    text = page.text_of("summary").replace(NB, " ")
    assert "ran 8" in text
    assert "not run 14" in text
    assert "compile error 1" in text
    rows = page.rows("summary")
    tiled = next(row for row in rows if row.startswith("matmul_tiled[float32]"))
    assert "21.31 ms" in tiled
    assert "101 GFLOP/s, 66.6 % of attainable" in tiled
    assert "1.09× the fastest" in tiled
    assert "31.5 M LDS conflicts" in tiled
    assert "31.5 M shared memory conflicts" in tiled
    naive = next(row for row in rows if row.startswith("matmul_naive[float16]"))
    assert "no result after 20 s" in naive


def test_every_case_has_a_row_with_its_status(run: Run, page: Page) -> None:
    ids = [a["title"] for tag, a, _ in page.elements if tag == "th" and a.get("title") in {c.id for c in run.cases}]
    assert {c.id for c in run.cases} <= set(ids)
    rows = page.rows("summary")
    ran = next(row for row in rows if row.startswith("matmul_naive[float32] cpu ran"))
    assert ran.endswith("812.4 ms 796.2 ms – 828.6 ms 21 1.90 s right: absolute 3.1e-05, relative 8.4e-05 all elements")
    assert any(row.startswith("matmul_naive[float32] sm80 not run — — — 800 ms right:") for row in rows)


def test_unavailable_things_come_with_reason_and_remedy(page: Page) -> None:
    assert (
        "time, counters mi300x no AMD GPU in this machine run the bundles in kernels/ on a host with one"
        in page.rows("unmeasured")
    )
    assert "only the corner and two interior blocks were checked" in page.text_of("unmeasured")


def test_roofline_tables_mark_what_is_predicted(page: Page) -> None:
    rows = page.rows("roofline")
    assert (
        "4 matmul_padded[float32] 2.15 GFLOP 12.6 MB 170.7 19.62 ms 109 GFLOP/s 151 GFLOP/s 72.4 % compute (vector.float32)"
        in rows
    )
    predicted = next(row for row in rows if row.startswith("6 matmul_padded[float16]") and "312" in row)
    assert (
        predicted
        == "6 matmul_padded[float16] 2.15 GFLOP 8.39 MB 256 — 10.67 — — 312 TFLOP/s — compute (matrix.float16) predicted"
    )
    measured = next(row for row in rows if row.startswith("4 matmul_tiled[float16]") and "312" in row)
    assert "240.5 1.600 41.30 µs 52.0 TFLOP/s 312 TFLOP/s 16.7 %" in measured
    assert "predicted" not in measured


def test_roofline_draws_measured_dots_and_predicted_diamonds(page: Page) -> None:
    marks = [
        (a["class"], a) for tag, a, _ in page.elements if tag in ("circle", "path") and "mk " in (a.get("class") or "")
    ]
    drawn = [name for name, _ in marks][2:]  # the first two are the key
    assert drawn.count("mk measured") == 7 + 1
    assert drawn.count("mk predicted") == 5 + 4
    text = page.text_of("roofline").replace(NB, " ")
    assert "vector.float32  151 GFLOP/s · measured" in text
    assert "matrix.float16  312 TFLOP/s · datasheet" in text
    assert "matmul_naive[float16]: timeout: no result after 20 s" in text


def test_suggestions_follow_the_conflicts_of_their_case() -> None:
    suggestion = Suggestion("A_shared", "padding", "pad A_shared by 8 elements", "padding 1 to 7: misaligned", 9, 0, 64)
    case = make_case("matmul_tiled", "float16", "sm80", suggestions=(suggestion,))
    page = Page(render(make_run(cases=(case, make_case("matmul_padded", "float16", "sm80")))))
    (cell,) = [a for tag, a, _ in page.elements if tag == "td" and a.get("class") == "advice"]
    assert cell["title"] == suggestion.proof
    text = page.text_of("conflicts")
    assert text.count(suggestion.text) == 1
    assert text.index(suggestion.text) < text.rindex("matmul_padded")


def test_conflicts_stand_side_by_side(page: Page) -> None:
    rows = page.rows("conflicts")
    gemm = next(row for row in rows if "all buffers ldmatrix" in row)
    assert (
        gemm
        == "gemm A_shared, B_shared all buffers ldmatrix 262,144 1,048,576 8 6,291,456 5,242,880 6,291,456 5,242,880 0 6×"
    )
    copy = next(row for row in rows if "A_shared cp.async.cg" in row and "2,097,152" in row)
    assert copy == (
        "37 copy A to A_shared A_shared cp.async.cg rule open 65,536 262,144 1 262,144 0 2,097,152 1,835,008 +1,835,008 8×"
    )
    assert "60 gemm A_shared, B_shared A_shared load 131,072 524,288 1 524,288 0 1× simulated" in rows


def test_what_an_open_rule_says_is_kept_apart() -> None:
    case = make_case("matmul_padded", "float16", "sm80")
    worse = tuple(
        dataclasses.replace(metric, value=4_000_000.0)
        if (metric.metric, metric.operation) == ("shared.conflicts", 3)
        else metric
        for metric in case.metrics
    )
    page = Page(render(make_run(cases=(dataclasses.replace(case, metrics=worse),))))
    text = page.text_of("main").replace(NB, " ")
    assert "no shared memory conflicts" in text
    assert "perhaps 4 M more: rule open" in text
    assert "no conflicts, simulated; perhaps 4 M more where the rule is open" in page.text_of("conflicts").replace(
        NB, " "
    )
    marks = [a.get("class") for tag, a, t in page.elements if tag == "td" and "".join(t) == "4,000,000"]
    assert [mark for mark in marks if mark] == ["n unsure"]


def test_limiters_speak_the_vendors_words(page: Page) -> None:
    metadata = make_metadata("matmul_tiled", "float16", "hip:gfx942") | {"occupancy_limiters": ["shared", "warps"]}
    text = unpacked(render(make_run(cases=(make_case("matmul_tiled", "float16", "mi300x", metadata=metadata),))))
    assert "LDS, wavefronts" in text


def test_amd_speaks_of_lds(page: Page) -> None:
    conflicts, variants = page.text_of("conflicts"), page.text_of("variants")
    assert "LDS cycles" in conflicts
    assert "LDS, static a workgroup" in variants.replace("\n", "")
    assert "shared memory, static a block" in variants


def test_variants_show_each_fact(page: Page) -> None:
    rows = page.rows("variants")
    assert "registers a thread — absent" in rows  # on the CPU no variant has it
    assert "registers a thread 40 40 118 118 122 122 18 18" in rows  # NVIDIA
    assert "registers a thread 50 50 128 128 132 132 28" in rows  # AMD
    assert "Nothing static is known of" in page.text_of("variants")  # the last one did not compile
    assert "spill stores a thread 0 B 0 B 0 B 0 B 0 B 0 B 0 B 0 B" in rows
    assert "AGPRs a thread 0 0 32 32 32 32 0" in rows
    assert any(row.startswith("limited by threads threads registers, shared memory") for row in rows)
    assert any(row.startswith("matrix 0 0 0 32 0 32") for row in rows)
    assert any(row.startswith("compile time all steps 538 ms") for row in rows)


def test_source_shows_figures_of_the_case_that_knows_most(page: Page) -> None:
    rows = page.rows("source")
    gemm = next(row for row in rows if row.startswith("39 "))
    assert gemm == "39 66 950 k 1.22 M 6.29 M 6.29 M 5.24 M 5.24 M — 7.65 k T.gemm(A_shared, B_shared, C_local)"
    plain = next(row for row in rows if row.startswith("32 "))
    assert plain == "32 A_shared = T.alloc_shared((block_M, block_K + pad), dtype)"


def test_source_data_has_every_case_with_operations(run: Run, page: Page) -> None:
    data = page.data
    cases = [key for file in data["sources"] for key in file["cases"]]
    assert len(cases) == 23  # all but the one that did not compile
    options = [a["value"] for tag, a, _ in page.elements if tag == "option"]
    assert sorted(options) == sorted(cases)  # the synthetic cases have no code, so no other selects have options


def test_flame_data_are_shapes_and_figures_of_equal_length(page: Page) -> None:
    data = page.data
    assert [tree["target"] for tree in data["flame"]] == ["cpu", "sm80", "mi300x"]
    for tree in data["flame"]:
        for shape in tree["shapes"]:
            count = len(shape["k"])
            assert {len(shape[key]) for key in "fl"} == {count}
            assert {len(shape[key]) for key in "ndq"} == {count - 1}
            assert all(parent <= index for index, parent in enumerate(shape["q"]))
            assert all(place < count for places in shape["h"] for place in places)
        for _, _, number, figures, sources, _ in tree["cases"]:
            places = tree["shapes"][number]["h"]
            assert [len(column) for column in figures] == [len(column) for column in places]
            assert all(isinstance(s, int) or len(s) == len(f) for s, f in zip(sources, figures))


def test_cases_of_one_kernel_share_their_shape() -> None:
    case = make_case("matmul_tiled", "float16", "sm80")
    cases = tuple(dataclasses.replace(case, id=f"{i}@sm80", tiles={"block_M": i}) for i in range(9))
    (tree,) = Page(render(make_run(cases=cases))).data["flame"]
    assert len(tree["shapes"]) == 1
    assert {one[2] for one in tree["cases"]} == {0}


def test_flame_weights_that_are_not_known_have_no_place(page: Page) -> None:
    cpu = page.data["flame"][0]
    mode = [mode["id"] for mode in cpu["modes"]].index("time")
    assert cpu["w"][mode] == pytest.approx(812.4e6 + 21.31e6 + 34.8e6 + 19.62e6 + 33.1e6 + 1.214e6 + 0.977e6)
    times = [figures[mode] for _, _, _, figures, _, _ in cpu["cases"]]
    assert times.count([]) == 1  # the case that ran into its time limit
    assert all(value > 0 for column in times for value in column)


def test_every_figure_leads_to_its_provenance(page: Page) -> None:
    data = page.data
    numbers = {int(str(a["data-p"])) for _, a, _ in page.elements if a.get("data-p")}
    assert numbers <= set(range(1, len(data["provenances"]) + 1))
    legend = {a["id"] for tag, a, _ in page.elements if tag == "tr" and str(a.get("id", "")).startswith("p")}
    assert legend == {f"p{number}" for number in range(1, len(data["provenances"]) + 1)}
    assert ["measured", "ncu", "2025.3.1", NCU.detail] in data["provenances"]


def test_machine_has_no_empty_values(page: Page) -> None:
    text = page.text_of("machine")
    assert "Intel(R) Xeon(R) CPU @ 2.80GHz" in text
    assert "apache-tvm" in text
    assert "gpusnone" in text.replace("\n", "")


def test_figures_that_cannot_be_are_shown_and_flagged() -> None:
    bad = Metric("shared.transactions", -3, "transactions", NCU, 5, "A_shared", "load", flag="out of range")
    page = Page(render(make_run(cases=(make_case("matmul_tiled", "float16", "sm80", metrics=(bad,)),))))
    cells = [
        (a.get("title"), "".join(t))
        for tag, a, t in page.elements
        if tag == "td" and "flagged" in (a.get("class") or "")
    ]
    assert ("flagged: out of range", "−3") in cells


def test_an_interrupted_run_says_so() -> None:
    assert "interrupted: finished cases are kept" in render(make_run(finished=None))


def test_an_empty_run_is_a_page(page: Page) -> None:
    empty = Page(render(make_run(cases=(), ceilings=(), unavailable=(), machine={}, description="")))
    assert "The run has no cases." in empty.text_of("main")
    assert "Everything that was asked for was measured." in empty.text_of("unmeasured")


def test_write_replaces_in_one_step(run: Run, html: str, tmp_path: Path) -> None:
    place = tmp_path / "index.html"
    place.write_text("old")
    assert write(run, place) == place
    assert place.read_text(encoding="utf-8") == html
    assert list(tmp_path.iterdir()) == [place]


def test_a_place_that_cannot_be_written_is_an_error_with_a_remedy(run: Run, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write") as caught:
        write(run, tmp_path / "missing" / "index.html")
    assert caught.value.remedy


def test_global_accesses_say_how_much_of_a_sector_is_asked_for() -> None:
    run = read_run(RECORDED)
    rows = [row.replace(NB, " ") for row in Page(render(run)).rows("global")]
    stores = [row for row in rows if " C store" in row]
    assert len(stores) == 12
    assert all("100 %" in row for row in stores)
