"""The bundle: a compiled kernel with everything known about it, as a directory or one zip file (``.tlk``).

A bundle is the border between compiling and launching: it needs no compiler to be read or launched.  Files:

======================  ===========================================================================
``kernel.json``         parameters, grid, launch recipe, tile operations, metadata, analyses, versions
``binary.<kind>``       cubin, hsaco or shared object
``source.<cu|ll>``      what the code generator printed
``listing.json``        instructions with their operation; ``listing.<syntax>`` the text they were read from
``thread_program.json`` the thread program as TVM writes it, for the simulator
======================  ===========================================================================

A zip file's comment is a digest of everything before it.  Its members are unpacked when they are asked for.

A bundle that has just been compiled may still lack what takes long and is not needed to launch it: the listing, and what is
counted in it.  It is made on a thread of its own; whoever asks for one of these, or saves the bundle, waits for it.
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
from tilelang_min.runtime.later import Later

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


@dataclass(frozen=True)
class Rest:
    """What completes a bundle: more of its record, and more files."""

    record: dict[str, Any]
    files: dict[str, bytes] = field(repr=False)


@dataclass
class Bundle:
    """A bundle in memory: ``record`` is the content of ``kernel.json``, ``files`` the others by name.

    ``path`` is where it was read from; files of a directory, or of a zip file whose content is in ``packed``, are read when they
    are asked for.  ``rest`` gives what is still being made (:class:`Rest`).
    """

    record: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    path: Path | None = None
    packed: bytes | None = field(default=None, repr=False)
    rest: Later[Rest] | None = field(default=None, repr=False)

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

    def complete(self) -> Bundle:
        """The bundle itself, when all of it is there.  Raises what went wrong where the rest was made."""
        rest = self.rest
        if rest is not None:
            made = rest.result()
            self.files.update(made.files)
            self.record.update(made.record)
            self.rest = None
        return self

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
        return KernelMetadata.from_json(self.complete().record["metadata"])

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
        if name not in self.files and self.rest is not None:
            self.complete()
        if name not in self.files:
            try:
                data = self._read(name)
            except (*_DAMAGE, KeyError) as error:
                raise BundleError(f"the bundle has no file {name}", remedy="compile the kernel again") from error
            except OSError as error:
                raise BundleError(
                    f"cannot read {self.path or ''}/{name}: {error.strerror}", remedy="compile the kernel again"
                ) from error
            self._check(name, data)
            self.files[name] = data
        return self.files[name]

    def _read(self, name: str) -> bytes:
        if self.packed is not None:
            with zipfile.ZipFile(io.BytesIO(self.packed)) as archive:
                return archive.read(name)
        if self.path is not None:
            return (self.path / name).read_bytes()
        raise KeyError(name)

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
        if not target.name:
            raise BundleError(f"{os.fspath(path)!r} names no bundle", remedy='give a name: kernel.save("matmul.tlk")')
        if target.suffix in (".tlk", ".zip"):
            data = self.archive()
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".tlk-")
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                os.chmod(temporary, 0o644)
                os.replace(temporary, target)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise
            return target
        content = self._content()
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=".tlk-"))
        try:
            for name, data in content.items():
                (folder / name).write_bytes(data)
            os.chmod(folder, 0o755)
            if target.is_dir():  # aside first: a reader finds the old bundle, the new one or none, never a part
                old = Path(tempfile.mkdtemp(dir=target.parent, prefix=".tlk-"))
                os.rename(target, old)
                os.rename(folder, target)
                shutil.rmtree(old)
            else:
                os.rename(folder, target)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return target

    def _content(self) -> dict[str, bytes]:
        """All files by name, ``kernel.json`` last."""
        self.complete()
        names = {self.record[key] for key in ("source", "listing")} | {
            self.record["binary"]["file"],
            "listing.json",
            "thread_program.json",
        }
        content = {name: self.file(name) for name in sorted(names)}
        self.record["digests"] = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
        content["kernel.json"] = json.dumps(self.record, indent=1).encode()
        return content

    def archive(self, level: int = 6) -> bytes:
        """The bundle as a zip file, compressed at ``level`` (1 to 9), with its seal."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            for name, data in self._content().items():
                # A ZipInfo without a date: the same bundle is the same file.
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, level)
            archive.comment = bytes(_SEAL_LENGTH)
        body = buffer.getvalue()[:-_SEAL_LENGTH]
        return body + _seal(body)


_SEAL_LENGTH = 64


def _seal(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


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
        return read_archive(place.read_bytes(), name=str(place))
    except FileNotFoundError as error:
        raise BundleError(
            f"there is no bundle at {place}", remedy="give a directory or a .tlk file that kernel.save() wrote"
        ) from error
    except (KeyError, ValueError, OSError) as error:
        raise _damaged(str(place), error) from error


def read_archive(data: bytes, *, name: str = "the file", sealed: bool = False) -> Bundle:
    """The bundle in a zip file's content.

    Raises BundleError when it is damaged, no bundle or too new; with ``sealed`` also when the digest at its end is not that of the
    rest.  Without, all members are unpacked and checked here: who has changed such a file on purpose need not know of the digest.
    """
    if sealed and _seal(data[:-_SEAL_LENGTH]) != data[-_SEAL_LENGTH:]:
        raise BundleError(f"{name} is cut off or damaged", remedy="compile the kernel again")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sealed:
                return Bundle(_record(archive.read("kernel.json")), {}, None, data)
            files = {member: archive.read(member) for member in archive.namelist()}
        bundle = Bundle(_record(files.pop("kernel.json")), files)
    except (KeyError, ValueError, OSError, *_DAMAGE) as error:
        raise _damaged(name, error) from error
    for member, content in files.items():
        bundle._check(member, content)
    return bundle


def _damaged(name: str, error: Exception) -> BundleError:
    return BundleError(
        f"{name} is not a bundle or is damaged: {error}", remedy="compile the kernel again and save it anew"
    )
