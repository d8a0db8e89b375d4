"""The thread program's function as JSON, and back.

Written through TVM's own reflection (type key and fields of every node), because ``tvm.ir.save_json`` of apache-tvm
0.27.0.post1 crashes on ``PrimType``, and re-parsing the printed script takes 0.8 s for a matrix product and loses the type of
calls.  Shared nodes are written once, so that variables keep their identity.
"""

from __future__ import annotations

import json
from typing import Any

import tvm
import tvm_ffi
from tvm import ir
from tvm_ffi import _ffi_api

from tilelang_min.errors import BundleError


class _Writer:
    """Numbers nodes in the order in which they are finished; a reference is the node's number."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.fields: dict[type, tuple[str, list[str]] | None] = {}
        self.alive: list[Any] = []  # a freed handle could be given to another node

    def value(self, value: Any) -> Any:
        """JSON for a field: numbers, text and None as they are, the rest as ``{kind: ...}``."""
        if type(value) in _PLAIN:
            return value
        if not isinstance(value, tvm_ffi.Object):
            return self._other(value)
        handle = value.__chandle__()
        number = self.numbers.get(handle)
        if number is None:
            node = self._node(value)
            self.alive.append(value)
            number = self.numbers[handle] = len(self.nodes)
            self.nodes.append(node)
        return {"node": number}

    def _other(self, value: Any) -> Any:
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, tvm_ffi.dtype):
            return {"dtype": str(value)}
        if isinstance(value, dict):
            return {"map": [[self.value(key), self.value(item)] for key, item in value.items()]}
        raise BundleError(f"a thread program cannot hold a {type(value).__name__}")

    def _node(self, value: Any) -> Any:
        kind = type(value)
        if kind not in self.fields:
            self.fields[kind] = _fields(value)
        fields = self.fields[kind]
        if fields is not None:
            type_key, names = fields
            written = {name: None if name == "span" else self.value(getattr(value, name)) for name in names}
            return {"type": type_key, "fields": written}
        if isinstance(value, ir.Op):
            return {"op": str(value.name)}
        if isinstance(value, tvm_ffi.Array):
            return {"array": [self.value(item) for item in value]}
        return {"map": [[self.value(key), self.value(item)] for key, item in value.items()]}


_PLAIN = frozenset({type(None), bool, int, float, str})


def _fields(value: Any) -> tuple[str, list[str]] | None:
    """Type key and names of the fields of nodes like ``value``; None for operators and containers."""
    if isinstance(value, (ir.Op, tvm_ffi.Array, tvm_ffi.Map)):
        return None
    info: Any = type(value).__tvm_ffi_type_info__
    names: list[str] = []
    level = info
    while level is not None:
        names = [field.name for field in level.fields or []] + names
        level = level.parent_type_info
    return str(info.type_key), names


def function_to_json(function: Any) -> str:
    """JSON text of a PrimFunc."""
    writer = _Writer()
    root = writer.value(function)
    return json.dumps({"tvm": tvm.__version__, "root": root, "nodes": writer.nodes}, separators=(",", ":"))


def function_from_json(text: str) -> Any:
    """The PrimFunc that :func:`function_to_json` wrote.

    Raises BundleError for text of another TVM version, whose nodes may have other fields.
    """
    record = json.loads(text)
    if record.get("tvm") != tvm.__version__:
        raise BundleError(
            f"the thread program was written by TVM {record.get('tvm')}, this is {tvm.__version__}",
            remedy="compile the kernel again to simulate it; launching needs no TVM",
        )
    made: list[Any] = []

    def value(item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        if "node" in item:
            return made[item["node"]]
        if "dtype" in item:
            return tvm_ffi.dtype(item["dtype"])
        return {value(key): value(entry) for key, entry in item["map"]}

    for node in record["nodes"]:
        if "op" in node:
            made.append(ir.Op.get(node["op"]))
        elif "array" in node:
            made.append(tvm_ffi.convert([value(item) for item in node["array"]]))
        elif "map" in node:
            made.append(tvm_ffi.convert({value(key): value(entry) for key, entry in node["map"]}))
        else:
            arguments: list[Any] = []
            for name, field in node["fields"].items():
                arguments += [name, value(field)]
            made.append(_ffi_api.MakeObjectFromPackedArgs(node["type"], *arguments))
    return value(record["root"])
