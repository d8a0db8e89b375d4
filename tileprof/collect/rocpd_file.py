"""rocpd databases, the default output of rocprofv3 since ROCm 7: dispatches, counters and ROCTX ranges.

Read from the base tables, whose views by their plain names are in every file: the view ``kernels`` loses dispatches that have
no region.  Columns are looked up, never counted on.  The tables of processes and nodes, which hold environment, command line and
host, are not read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tileprof.collect.amd import Agent, Agents, Dispatch, agent_from, launch_of
from tileprof.collect.profile import ForeignLaunch, ForeignProfile, Range
from tileprof.collect.ranges import RangeIndex
from tileprof.collect.sqlite_file import Database
from tileprof.errors import ProfileFormatError
from tileprof.store.records import Provenance

TOOL = "rocprofv3"
KNOWN_MAJORS = ("3", "4")
NEEDED = ("rocpd_kernel_dispatch", "rocpd_info_kernel_symbol")


def read(path: Path) -> ForeignProfile:
    """The profile in a database.  Raises :class:`ProfileFormatError` where it is damaged or of another form."""
    with Database(path) as database:
        return _Reader(database, path).profile()


class _Reader:
    def __init__(self, database: Database, path: Path) -> None:
        self.database = database
        missing = [name for name in NEEDED if not database.has(name)]
        if missing:
            raise ProfileFormatError(f"{path} has no {' and no '.join(missing)}: it is no rocpd database that is known")
        self.notes: list[str] = []
        self.version = self._version()

    def _version(self) -> str:
        if not self.database.has("rocpd_metadata"):
            return ""
        tags = {str(row["tag"]): str(row["value"]) for row in self.database.rows("rocpd_metadata", "tag", "value")}
        version = tags.get("schema_version", "")
        if version and version.partition(".")[0] not in KNOWN_MAJORS:
            self.notes.append(f"schema {version} of rocpd is not known here: some things may be missing")
        return version

    def profile(self) -> ForeignProfile:
        agents = self._agents()
        counters = self._counters()
        ranges = self._ranges()
        index = RangeIndex(ranges)
        launches: list[ForeignLaunch] = []
        symbols = {
            (row["guid"], row["id"]): row
            for row in self.database.rows(
                "rocpd_info_kernel_symbol", "guid", "id", "kernel_name", "display_name", "sgpr_count", "arch_vgpr_count",
                "accum_vgpr_count",
            )
        }  # fmt: skip
        columns = (
            "guid", "pid", "tid", "agent_id", "kernel_id", "start", "end", "private_segment_size", "group_segment_size",
            "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "grid_size_x", "grid_size_y", "grid_size_z", "event_id",
        )  # fmt: skip
        for row in self.database.rows("rocpd_kernel_dispatch", *columns, order="start"):
            symbol = symbols.get((row["guid"], row["kernel_id"]), {})
            values = counters.get((row["guid"], row["event_id"]), {})
            dispatch = Dispatch(
                name=symbol.get("display_name") or symbol.get("kernel_name") or f"(kernel {row['kernel_id']})",
                symbol=str(symbol.get("kernel_name") or "").removesuffix(".kd"),
                agent=agents.get((row["guid"], row["agent_id"]), Agent()),
                process=row["pid"],
                grid=(row["grid_size_x"], row["grid_size_y"], row["grid_size_z"]),
                block=(row["workgroup_size_x"], row["workgroup_size_y"], row["workgroup_size_z"]),
                vgprs=symbol.get("arch_vgpr_count"),
                agprs=symbol.get("accum_vgpr_count"),
                sgprs=symbol.get("sgpr_count"),
                lds_bytes=row["group_segment_size"],
                lds_with_dynamic=True,
                scratch_bytes=row["private_segment_size"],
                start_ns=row["start"],
                end_ns=row["end"],
                passes=[values] if values else (),
                ranges=index.around(row["start"], row["pid"], row["tid"]) if row["start"] is not None else (),
            )
            source = Provenance("measured", TOOL, "", "counters" if values else "kernel trace")
            launches.append(launch_of(dispatch, len(launches), source))
        described = Agents(dict(enumerate(agents.values()))).describe()
        return ForeignProfile(
            "rocpd database", TOOL, "", tuple(launches), tuple(ranges), gpus=described, notes=tuple(self.notes)
        )

    def _agents(self) -> dict[tuple[Any, Any], Agent]:
        """GPUs; facts beside the columns are in ``extdata``."""
        found: dict[tuple[Any, Any], Agent] = {}
        if not self.database.has("rocpd_info_agent"):
            return found
        for row in self.database.rows("rocpd_info_agent", "guid", "id", "type", "name", "product_name", "extdata"):
            if row["type"] != "GPU":
                continue
            try:
                more = json.loads(row["extdata"] or "{}")
            except ValueError:
                more = {}
            own: Mapping[str, Any] = {**(more if isinstance(more, dict) else {}), "name": row["name"]}
            agent = agent_from({**own, "product_name": row["product_name"]}.get)
            found[row["guid"], row["id"]] = agent
        return found

    def _counters(self) -> dict[tuple[Any, Any], dict[str, float]]:
        """Counters by event, added up over the hardware's instances; samples of streaming counters are left out."""
        found: dict[tuple[Any, Any], dict[str, float]] = defaultdict(lambda: defaultdict(float))
        if not self.database.has("rocpd_pmc_event") or not self.database.has("rocpd_info_pmc"):
            return {}
        names = {
            (row["guid"], row["id"]): str(row["symbol"] or row["name"])
            for row in self.database.rows("rocpd_info_pmc", "guid", "id", "name", "symbol")
        }
        for row in self.database.rows("rocpd_pmc_event", "guid", "event_id", "sample_id", "pmc_id", "value"):
            name = names.get((row["guid"], row["pmc_id"]))
            if (
                name is not None
                and row["value"] is not None
                and row["sample_id"] is None
                and row["event_id"] is not None
            ):
                found[row["guid"], row["event_id"]][name] += float(row["value"])
        return {key: dict(values) for key, values in found.items()}

    def _ranges(self) -> list[Range]:
        """ROCTX ranges: regions of the category that the markers have."""
        if not all(self.database.has(name) for name in ("rocpd_region", "rocpd_event", "rocpd_string")):
            return []
        strings = {
            (row["guid"], row["id"]): str(row["string"])
            for row in self.database.rows("rocpd_string", "guid", "id", "string")
        }
        events = {
            (row["guid"], row["id"]): row
            for row in self.database.rows("rocpd_event", "guid", "id", "category_id", "extdata")
        }
        found = []
        for row in self.database.rows("rocpd_region", "guid", "pid", "tid", "start", "end", "name_id", "event_id"):
            event = events.get((row["guid"], row["event_id"]), {})
            if "MARKER" not in strings.get((row["guid"], event.get("category_id")), "").upper():
                continue
            name = _message(event.get("extdata")) or strings.get((row["guid"], row["name_id"]), "")
            found.append(Range(name, row["start"], row["end"], row["pid"], row["tid"]))
        return found


def _message(extdata: Any) -> str:
    """The text of a marker, which newer files keep beside the name of the function that set it."""
    try:
        record = json.loads(extdata or "{}")
    except (TypeError, ValueError):
        return ""
    return str(record.get("message", "")) if isinstance(record, dict) else ""
