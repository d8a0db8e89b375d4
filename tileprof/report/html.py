"""The HTML report: one file that needs no network, no server, and for its main figures no script.

The page is assembled from the view modules beside this one and the templates in ``templates/``.  Autoescaping is on; style sheet
and scripts are inlined and allowed by their hashes in a content security policy that forbids everything else, so a name that
slipped through unescaped could still do nothing.  Data for the scripts, and the parts of the page that a reader looks at second,
are deflated JSON in an inert block (``packing.py``).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tileprof.analyse.diagnosis import diagnose
from tileprof.analyse.findings import Finding
from tileprof.analyse.flame import MODES, flame_trees
from tileprof.analyse.labels import variant_labels
from tileprof.analyse.roofline import LEVELS, rooflines
from tileprof.report import (
    cases_view,
    findings_view,
    flame_view,
    numbers,
    overview,
    roofline_table,
    roofline_view,
    words,
)
from tileprof.report.cells import ProvenanceTable
from tileprof.report.code_view import code_data
from tileprof.report.conflict_view import conflict_targets
from tileprof.report.counters_view import counter_targets
from tileprof.report.global_view import global_targets
from tileprof.report.packing import Parts, pack
from tileprof.report.roofline_axes import LEVEL_WORDS
from tileprof.report.source_view import source_files
from tileprof.report.text import breakable, shorten
from tileprof.report.timeline_view import timeline_figures
from tileprof.report.variants_view import variant_tables
from tileprof.report.writing import replace_file
from tileprof.store.records import PROVENANCES, Run

SCRIPTS = ("core.js", "flame.js", "source.js", "code.js", "timeline.js", "cases.js")
"""The page's scripts in their order; each but the first takes what it needs from the first, which unpacks the page.

Those of parts that a page lacks are left out.
"""

ROOM = 285_000
"""Bytes that a page takes where it can, filled up with code."""

LATE, DATA = "<!--late-->", "<!--data-->"
"""Marks in a page for what is made last; names in it are escaped and can be none of these."""

__all__ = ["render", "write"]


def render(run: Run, findings: Sequence[Finding] | None = None) -> str:
    """The whole page as text.  Raises nothing for odd data: what cannot be shown is said in its place."""
    provenances = ProvenanceTable()
    labels = variant_labels(run.cases)
    roofs = rooflines(run)
    points = {point.case.id: point for roof in roofs for point in roof.points}
    trees = flame_trees(run)
    strings = flame_view.Strings()
    flame_data = [flame_view.flame_data(tree, strings, provenances) for tree in trees]
    sources = source_files(run, labels, provenances)
    matrix_targets, matrix_rows = overview.matrix(run, labels, points, provenances)
    values: dict[str, Any] = {
        "run": run,
        "labels": labels,
        "numbers": numbers,
        "wall_time": overview.wall_time(run),
        "statuses": overview.status_counts(run),
        "targets": {case.target_name: case.target for case in run.cases},
        "matrix_targets": matrix_targets,
        "matrix_rows": matrix_rows,
        "case_rows": overview.case_rows(run, labels, provenances),
        "failures": overview.failures(run, labels),
        "notes": overview.notes(run, labels),
        "findings": findings_view.view(diagnose(run) if findings is None else findings, labels),
        "roofs": [
            {
                "roofline": roof,
                "figure": roofline_view.roof_figure(roof, labels),
                "rows": roofline_table.roof_rows(roof, labels, provenances),
                "source": roofline_view.roof_source(roof),
                "levels": roofline_table.known_levels(roof),
                "hidden": max(0, len(roof.points) - roofline_table.MOST_ROWS),
                "others": [
                    provenances.cell(
                        numbers.si(c.value, "FLOP/s" if c.unit_class else "B/s"), c.provenance, numbers.count(c.value)
                    )
                    for c in roof.other_ceilings
                ],
            }
            for roof in roofs
        ],
        "flames": [flame_view.flame_table(tree, provenances) for tree in trees],
        "comparing": False,
        "flame_modes": [mode for mode in MODES if any(mode in tree.modes for tree in trees)],
        "conflicts": conflict_targets(run, labels, provenances),
        "counters": counter_targets(run, labels, provenances),
        "globals": global_targets(run, labels, provenances),
        "timelines": timeline_figures(run, labels),
        "variants": variant_tables(run, labels, provenances),
        "sources": sources,
        "machine": flatten(run.machine),
        "provenance_words": words.PROVENANCE_WORDS,
        "words": words.words,
        "level_words": LEVEL_WORDS,
        "all_levels": list(LEVELS),
    }
    # Last: everything above has given out its provenance numbers.
    values["provenances"] = provenances.rows()
    data = {
        "provenances": [
            [shorten(text, 200) for text in (p.kind, p.tool, p.version, p.detail)] for _, p in provenances.rows()
        ],
        "kinds": list(PROVENANCES),
        "modes": [mode.id for mode in values["flame_modes"]],
        "cases": cases_view.cases_data(run, points, strings) if len(run.cases) > 1 else None,
        "flame": flame_data,
        "sources": [file.data for file in sources],
        "timelines": [figure.data for figure in values["timelines"]],
    }
    data["strings"] = strings.all()  # after everything that gives them out
    any_code = any(case.assembly or case.generated for case in run.cases)
    needed = {"timeline.js": data["timelines"], "code.js": any_code, "cases.js": data["cases"]}
    scripts = [script for script in SCRIPTS if needed.get(script, True)]
    return page("report.html.j2", values, data, scripts, partial(_code, run, labels))


def _code(run: Run, labels: dict[str, str], room: int) -> tuple[str, dict[str, Any]]:
    """The panel with two cases' code side by side, and the data of as much code as there is room for."""
    code = code_data(run, room)
    cases = [(key, run.cases[int(key)]) for key in code["cases"]]
    options = [(key, f"{labels[case.id]} @ {case.target_name}") for key, case in cases]
    values = {"code_cases": options, "code_left": code["left"], "numbers": numbers}
    return _environment().get_template("code.html.j2").render(values) if options else "", {"code": code}


def page(
    template: str,
    values: dict[str, Any],
    data: dict[str, Any],
    scripts: Sequence[str],
    late: Callable[[int], tuple[str, dict[str, Any]]] = lambda room: ("", {}),
) -> str:
    """A page from a template: style and scripts inlined and allowed by their hashes, ``data`` packed behind them.

    ``late`` is asked last, with the bytes that are left of ROOM, for what stands at the mark ``late`` and for more data.
    """
    style, theme, script = _asset("report.css"), _asset("theme.js"), _together(scripts)
    parts = Parts()
    inlined = {
        "style": Markup(style),
        "theme_script": Markup(theme),
        "script": Markup(script),
        "policy": policy(style, theme, script),
        "packed": parts.hold,
        "late": Markup(LATE),
        "data": Markup(DATA),
    }
    text = _environment().get_template(template).render(values | inlined)
    data = data | {"parts": parts.texts}
    panel, more = late(ROOM - len(text.encode()) - len(pack(data)))
    return text.replace(LATE, panel).replace(DATA, pack(data | more))


def write(run: Run, path: str | Path) -> Path:
    """Writes the page, replacing an older one in one step.  Raises StoreError when the place cannot be written."""
    return replace_file(Path(path), render(run), remedy="choose another place with -o")


def policy(style: str, *scripts: str) -> str:
    """A content security policy under which only exactly these texts run or style, and nothing is ever fetched."""
    allowed = " ".join(_digest(script) for script in scripts)
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {allowed}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def flatten(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested dictionary as (dotted key, text); empty lists and dictionaries say ``none``."""
    rows: list[tuple[str, str]] = []
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            rows.extend(flatten(value, f"{name}."))
        elif isinstance(value, (list, tuple)):
            rows.append((name, "; ".join(_describe(item) for item in value) or "none"))
        elif value is None:
            rows.append((name, numbers.ABSENT))
        elif name.endswith("_bytes") and isinstance(value, int):
            rows.append((name.removesuffix("_bytes"), numbers.si(value, "B")))
        else:
            rows.append((name, "none" if value in ({}, "") else str(value)))
    return rows


def _describe(item: Any) -> str:
    if isinstance(item, Mapping):
        return ", ".join(f"{key} {value}" for key, value in item.items())
    return str(item)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _together(scripts: Sequence[str]) -> str:
    """The scripts as one function, which can wait for the page to be unpacked; ``ready`` says that it came to its end."""
    return "\n".join(
        ['"use strict";', "(async () => {", *map(_asset, scripts), 'root.classList.add("ready");', "})();"]
    )


@cache
def _asset(name: str) -> str:
    """Text of a script or style without indentation and lines of comment; no text of ours spans lines."""
    text = (resources.files("tileprof.report") / "assets" / name).read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    kept = "\n".join(line for line in lines if line and not line.startswith("//") and line != '"use strict";')
    if not name.endswith(".css"):
        return kept
    kept = re.sub(r"/\*.*?\*/", "", kept, flags=re.DOTALL)
    return re.sub(r"\s*([{};,])\s*", r"\1", kept).replace(";}", "}").replace(": ", ":")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tileprof.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["px"] = roofline_view.px
    environment.filters["shorten"] = shorten
    environment.filters["breakable"] = breakable
    return environment
