"""The catalogue: what every metric is called, its unit and meaning, and which raw counters give it on which tool and chip.

Canonical names are the same words in metadata, in workload files and in results.  Raw counter names are known here and
nowhere else.  Imports nothing of the package but records and errors, and no third party.
"""

from tileprof.metrics.catalogue import METRICS, MetricInfo, UnknownMetric, lookup, make, names
from tileprof.metrics.from_metadata import METADATA_FIELDS, metadata_metrics
from tileprof.metrics.units import convert, known_unit

__all__ = [
    "METADATA_FIELDS",
    "METRICS",
    "MetricInfo",
    "UnknownMetric",
    "convert",
    "known_unit",
    "lookup",
    "make",
    "metadata_metrics",
    "names",
]
