"""The bundle: a compiled kernel with everything known about it, as a directory or one zip file (``.tlk``).

A bundle is the border between compiling and launching: it needs no compiler to be read or launched.  Files:

======================  ===========================================================================
``kernel.json``         parameters, grid, launch recipe, tile operations, metadata, analyses, versions
``binary.<kind>``       cubin, hsaco or shared object
``source.<cu|ll>``      what the code generator printed
``listing.json``        instructions with their operation; ``listing.<syntax>`` the text they were read from
``thread_program.json`` the thread program as TVM writes it, for the simulator
======================  ===========================================================================
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilelang_min.errors import BundleError
from tilelang_min.program import KernelMetadata, Listing, Parameter, SharedBuffer, TileOperation

FORMAT = 1
"""Version of the layout above; a reader refuses newer ones."""

_REQUIRED = (
    "format",
    "name",
    "symbol",
    "target",
    "parameters",
    "grid",
    "threads",
    "launch",
    "operations",
    "metadata",
    "binary",
)


@dataclass
class Bundle:
    """A bundle in memory: ``record`` is the content of ``kernel.json``, ``files`` the others by name.

    ``path`` is where it was read from; files of a directory are read when they are asked for.
    """

    record: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    path: Path | None = None

    def __post_init__(self) -> None:
        missing = [key for key in _REQUIRED if key not in self.record]
        if missing:
            raise BundleError(
                f"kernel.json of this bundle lacks {', '.join(missing)}", remedy="compile the kernel again"
            )
        if self.record["format"] > FORMAT:
            raise BundleError(
                f"this bundle has format {self.record['format']}, this version reads up to {FORMAT}",
                remedy="upgrade tileprof",
            )

    # -- content ---------------------------------------------------------------------------------------------------

    @property
    def binary(self) -> bytes:
        """The machine code file."""
        return self.file(self.record["binary"]["file"])

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Tensor parameters in call order."""
        return tuple(
            Parameter(p["name"], p["dtype"], tuple(p["shape"]), p["access"]) for p in self.record["parameters"]
        )

    @property
    def operations(self) -> tuple[TileOperation, ...]:
        """Tile operations by id."""
        return tuple(TileOperation.from_json(item) for item in self.record["operations"])

    @property
    def metadata(self) -> KernelMetadata:
        """Static metadata."""
        return KernelMetadata.from_json(self.record["metadata"])

    @property
    def shared(self) -> tuple[SharedBuffer, ...]:
        """Shared tiles with their place in the block's shared memory."""
        return tuple(SharedBuffer(**{**item, "shape": tuple(item["shape"])}) for item in self.record["shared"])

    @property
    def listing(self) -> Listing:
        """Machine listing with operations."""
        record = json.loads(self.file("listing.json"))
        return Listing.from_json(record, self.file(self.record["listing"]).decode())

    @property
    def source(self) -> str:
        """Text that the code generator printed."""
        return self.file(self.record["source"]).decode()

    def file(self, name: str) -> bytes:
        """Content of one file; raises BundleError when it is missing."""
        if name not in self.files:
            if self.path is None:
                raise BundleError(f"the bundle has no file {name}", remedy="compile the kernel again")
            try:
                data = (self.path / name).read_bytes()
            except OSError as error:
                raise BundleError(
                    f"cannot read {self.path / name}: {error.strerror}", remedy="compile the kernel again"
                ) from error
            self._check(name, data)
            self.files[name] = data
        return self.files[name]

    def _check(self, name: str, data: bytes) -> None:
        """Raise BundleError unless ``data`` is what was saved under ``name``."""
        wanted = self.record.get("digests", {}).get(name)
        if wanted is not None and hashlib.sha256(data).hexdigest() != wanted:
            raise BundleError(
                f"{self.path / name if self.path else name} is damaged: it is not what was saved",
                remedy="compile the kernel again",
            )

    # -- disk ------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the bundle: a directory, or a zip file when the name ends in ``.tlk`` or ``.zip``.

        The target appears whole or not at all.  An existing bundle of that name is replaced.
        """
        target = Path(path)
        names = {self.record[key] for key in ("source", "listing")} | {
            self.record["binary"]["file"],
            "listing.json",
            "thread_program.json",
        }
        content = {name: self.file(name) for name in sorted(names)}
        self.record["digests"] = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
        content["kernel.json"] = json.dumps(self.record, indent=1).encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix in (".tlk", ".zip"):
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in content.items():
                    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".tlk-")
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(buffer.getvalue())
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
            return target
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=".tlk-"))
        try:
            for name, data in content.items():
                (folder / name).write_bytes(data)
            os.chmod(folder, 0o755)
            if target.exists():
                shutil.rmtree(target)
            os.rename(folder, target)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return target


_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, NotImplementedError)
"""What reading a damaged zip file raises, depending on where the damage is."""


def _record(data: bytes) -> dict[str, Any]:
    """The content of ``kernel.json``; ValueError when it is no object."""
    record = json.loads(data)
    if not isinstance(record, dict):
        raise ValueError("kernel.json is no object")
    return record


def load_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Read a bundle from a directory or zip file.  Raises BundleError when it is missing, damaged or too new."""
    place = Path(path)
    try:
        if place.is_dir():
            return Bundle(_record((place / "kernel.json").read_bytes()), {}, place)
        with zipfile.ZipFile(place) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        bundle = Bundle(_record(files.pop("kernel.json")), files)
        for name, data in files.items():
            bundle._check(name, data)
        return bundle
    except FileNotFoundError as error:
        raise BundleError(
            f"there is no bundle at {place}", remedy="give a directory or a .tlk file that kernel.save() wrote"
        ) from error
    except (KeyError, ValueError, OSError, *_DAMAGE) as error:
        raise BundleError(
            f"{place} is not a bundle or is damaged: {error}", remedy="compile the kernel again and save it anew"
        ) from error
