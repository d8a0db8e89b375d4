"""Hopper's instructions as calls of a strand: mbarriers, bulk copies, warp group products, barriers of parts of a block.

Where one may have to wait the source yields, so a program with any of them becomes a generator (``roles.is_concurrent``).
"""

from __future__ import annotations

from collections import Counter

from tilelang_min.errors import SimulationError
from tilelang_min.simulate.instructions import MATRICES, Instructions
from tilelang_min.simulate.tree import Buffer, Expression, Statement
from tilelang_min.simulate.values import Array, Linear, Uniform, Value
from tilelang_min.simulate.warpgroup import Product

SIGNS = (1, -1)


def product_registers(statement: Statement) -> set[int]:
    """Keys of the register arrays that warp group products use."""
    found: set[int] = set()
    if statement.kind == "effect" and str(statement.args[0].value).startswith("tirx.ptx.wgmma_"):
        found |= {arg.value.key for arg in statement.args[0].args if arg.kind == "load" and arg.value.scope == "local"}
    for child in statement.body:
        if child is not None:
            found |= product_registers(child)
    return found


class HopperInstructions(Instructions):
    """Adds the instructions of sm_90a.

    ``concurrent``: whether the program runs as strands; ``watched`` are register arrays whose every access is reported.
    """

    concurrent: bool
    watched: frozenset[int]
    maps: dict[int, str]
    _products = False

    def perform(self, call: Expression) -> None:
        """Writes a call made for its effect."""
        name: str = call.value
        if name == "tirx.cuda.warp_sync" or name == "tirx.ptx.bar_warp_sync":
            if self.concurrent:
                self.source.line(f"rt.warp_sync({self.mask})")
            return
        if name == "tirx.tvm_storage_sync" and self.concurrent:
            self.executes(Counter(barrier=1))
            self.source.line(f"yield from rt.block_barrier({self.operation}, {self.mask})")
            return
        if not name.startswith("tirx.ptx."):
            return super().perform(call)
        operands = [arg for arg in call.args if arg.kind != "text"]
        tokens = [arg.value for arg in call.args[:-1] if arg.kind == "text" and arg.value]
        entry = name.removeprefix("tirx.ptx.")
        family = entry.split("_")[0]
        if family == "wgmma":
            return self.wgmma(tokens, operands)
        if entry.startswith(("cp_async_bulk", "cp_reduce_async_bulk")):
            return self.bulk(tokens, operands)
        if family in (
            "mbarrier",
            "bar",
            "barrier",
            "fence",
            "setmaxnreg",
            "mapa",
            "st",
            "stmatrix",
            "prefetch",
            "griddepcontrol",
        ):
            method = getattr(self, f"ptx_{family}")
            method(tokens, operands)
            return None
        return super().perform(call)

    # ---- values ---------------------------------------------------------------------------------------------------------

    def text(self, e: Expression) -> str:
        """Source of a number, or of the shared address that an operand computes."""
        return self.array(e).source

    def intrinsic(self, e: Expression) -> Value:
        """Ranks in a cluster and elections."""
        if e.value == "tirx.cuda.mov_sreg":
            register = next((arg.value for arg in e.args if arg.kind == "text"), "")
            if register == "cluster_ctarank":
                return Uniform(Linear.atom(self.source.hoist("rt.rank()")), e.dtype)
            if register == "cluster_nctarank":
                x, y, z = self.layout.program.cluster
                return Uniform(Linear(x * y * z), e.dtype)
            raise SimulationError(f"the simulator has no rule for the register {register}")
        if e.value == "tirx.cuda.elect_sync":
            return Array(f"rt.elect({self.mask}).astype(np.uint32)", e.dtype)
        return super().intrinsic(e)

    def uses_register(self, buffer: Buffer, index: Value, lanes: int) -> None:
        """Reports an access to registers that a product may still own."""
        if buffer.key not in self.watched or self._products:
            return
        if isinstance(index, Uniform):
            self.source.line(f"rt.products.touch({buffer.key}, {index.linear.source()}, {lanes}, {self.operation})")
        else:
            self.source.line(f"rt.products.touch_all({buffer.key}, {self.operation})")

    # ---- barriers and fences --------------------------------------------------------------------------------------------

    def ptx_mbarrier(self, tokens: list[str], operands: list[Expression]) -> None:
        """``mbarrier.*``."""
        tail = f"{self.operation}, {self.mask})"
        what = tokens[0]
        if what in ("try_wait", "test_wait"):
            if "parity" not in tokens or not self.concurrent:
                raise SimulationError(f"the simulator cannot execute mbarrier.{'.'.join(tokens)}")
            address, parity = self.text(operands[1]), self.text(operands[2])
            self.executes(Counter(barrier=1))
            self.source.line(f"yield from rt.mbarrier_wait({address}, {parity}, {tail}")
            self.assign(operands[:1], "np.ones((1, 1), np.uint32)")
            return
        self.executes(Counter(barrier=1))
        address = self.text(operands[0])
        if what == "init":
            self.source.line(f"rt.mbarrier_init({address}, {self.text(operands[1])}, {tail}")
        elif what == "inval":
            self.source.line(f"rt.mbarrier_inval({address}, {tail}")
        elif what in ("arrive", "expect_tx") and "noComplete" not in tokens:
            expects = "expect_tx" in tokens
            amount = self.text(operands[1]) if expects else "0"
            times = self.text(operands[1]) if not expects and len(operands) > 1 else "1"
            self.source.line(f"rt.mbarrier_arrive({address}, {times}, {amount}, {what == 'arrive'}, {tail}")
        else:
            raise SimulationError(f"the simulator cannot execute mbarrier.{'.'.join(tokens)}")

    def ptx_bar(self, tokens: list[str], operands: list[Expression]) -> None:
        """``bar.sync`` and ``bar.arrive``."""
        self.executes(Counter(barrier=1))
        waits = "arrive" not in tokens
        if "red" in tokens or not operands:
            raise SimulationError(f"the simulator cannot execute bar.{'.'.join(tokens)}")
        count = self.text(operands[1]) if len(operands) > 1 else "rt.cluster.warps * 32"
        self.source.line(
            f"yield from rt.named_barrier({self.text(operands[0])}, {count}, {waits}, {self.operation}, {self.mask})"
        )

    def ptx_barrier(self, tokens: list[str], operands: list[Expression]) -> None:
        """``barrier.cluster.*``, and ``barrier.sync``, which is ``bar.sync``."""
        if "cluster" not in tokens:
            self.ptx_bar(tokens, operands)
            return
        self.executes(Counter(barrier=1))
        if "arrive" in tokens:
            self.source.line(f"rt.cluster_arrive({self.operation}, {self.mask})")
        else:
            self.source.line(f"yield from rt.cluster_wait({self.operation}, {self.mask})")

    def ptx_fence(self, tokens: list[str], operands: list[Expression]) -> None:
        """Fences.  Those of memory order alone need nothing here: barriers order all that is watched."""
        self.executes(Counter(barrier=1))
        if not self.concurrent:
            return
        if "proxy" in tokens:
            if "async" not in tokens:
                raise SimulationError(f"the simulator has no rule for fence.{'.'.join(tokens)}")
            if "global" not in "".join(tokens):
                self.source.line(f"rt.fence_proxy({self.mask})")
        elif "mbarrier_init" in tokens:
            self.source.line(f"rt.fence_mbarrier_init({self.mask})")

    def ptx_setmaxnreg(self, tokens: list[str], operands: list[Expression]) -> None:
        """``setmaxnreg``."""
        self.executes(Counter(other=1))
        self.source.line(f"rt.set_registers({self.text(operands[0])}, {self.operation}, {self.mask})")

    def ptx_mapa(self, tokens: list[str], operands: list[Expression]) -> None:
        """``mapa``: a number that stands for an address in another block of the cluster."""
        value = f"rt.map_address({self.text(operands[1])}, {self.text(operands[2])})"
        self.assign(operands[:1], f"rt.spread({value})[None]")

    def ptx_st(self, tokens: list[str], operands: list[Expression]) -> None:
        """``st.shared::cluster``: registers to an address of another block, or the own."""
        lanes = next((int(token[1:]) for token in tokens if token in ("v2", "v4")), 1)
        if (
            "shared::cluster" not in tokens
            or tokens[-1] not in ("f32", "b32", "u32", "s32")
            or len(operands) != lanes + 1
        ):
            raise SimulationError(f"the simulator cannot execute st.{'.'.join(tokens)}")
        self.executes(Counter(store=1))
        values = self.registers(operands[1:])
        site = self.shared_site("remote_store")
        self.source.line(
            f"rt.remote_store({site}, {self.text(operands[0])}, {values}, {lanes}, {self.operation}, {self.mask})"
        )

    def ptx_prefetch(self, tokens: list[str], operands: list[Expression]) -> None:
        """Prefetches do nothing that could be seen."""
        self.executes(Counter(other=1))

    def ptx_griddepcontrol(self, tokens: list[str], operands: list[Expression]) -> None:
        """Kernels are simulated one at a time: the one before has ended."""
        self.executes(Counter(other=1))

    # ---- copies ---------------------------------------------------------------------------------------------------------

    def ptx_stmatrix(self, tokens: list[str], operands: list[Expression]) -> None:
        """``stmatrix``: one address a lane, then the registers."""
        matrices = next((MATRICES[token] for token in tokens if token in MATRICES), 0)
        if not matrices or "m8n8" not in tokens or "b16" not in tokens or len(operands) != matrices + 1:
            raise SimulationError(f"the simulator cannot execute stmatrix.{'.'.join(tokens)}")
        address = self.pointer(operands[0], "shared")
        site = self.site("stmatrix", address.buffer, matrices)
        function = self.source.hoist(f"rt.stmatrix({site.number}, {'trans' in tokens})", "s")
        values = self.registers(operands[1:])
        self.source.line(f"{function}({self.integers.array(address.offset).source}, {values}, {self.mask})")

    def bulk(self, tokens: list[str], operands: list[Expression]) -> None:
        """``cp.async.bulk.*`` and ``cp.reduce.async.bulk.*``."""
        self.executes(Counter(async_copy=1))
        if "prefetch" in tokens:
            return
        if "commit_group" in tokens:
            self.source.line(f"rt.copies.commit({self.mask})")
            return
        if "wait_group" in tokens:
            self.source.line(f"rt.copies.wait({self.text(operands[0])}, {self.mask})")
            return
        dimensions = next((int(token[0]) for token in tokens if token in ("1d", "2d", "3d", "4d", "5d")), 0)
        if "tensor" not in tokens or not dimensions or "tile" not in tokens:
            raise SimulationError(f"the simulator cannot execute cp.{'.'.join(tokens)}")
        if "L2::cache_hint" in tokens:
            operands = operands[:-1]
        tail = f"{self.operation}, {self.mask})"
        if "bulk_group" in tokens:  # to global memory
            name, coordinates, origin = self.map_name(operands[0]), operands[1 : 1 + dimensions], operands[-1]
            reduction = next((token for token in ("add", "min", "max") if token in tokens), "")
            if "reduce" in tokens and not reduction:
                raise SimulationError(f"the simulator cannot execute cp.{'.'.join(tokens)}")
            site = self.shared_site("tma_store")
            where = ", ".join(self.text(c) for c in coordinates)
            self.source.line(
                f"rt.copies.store({name!r}, {site}, {self.text(origin)}, ({where},), {reduction!r}, {tail}"
            )
            return
        name, coordinates = self.map_name(operands[1]), operands[2 : 2 + dimensions]
        rest = operands[2 + dimensions :]
        destinations = self.text(rest[1]) if "multicast::cluster" in tokens else "None"
        site = self.shared_site("tma_load")
        where = ", ".join(self.text(c) for c in coordinates)
        self.source.line(
            f"rt.copies.load({name!r}, {site}, {self.text(operands[0])}, ({where},), {self.text(rest[0])}, {destinations}, {tail}"
        )

    def map_name(self, e: Expression) -> str:
        """The tensor map whose address an operand computes."""
        while e.kind == "call" and e.value in ("tirx.reinterpret", "tirx.address_of"):
            e = e.args[0]
        name = self.maps.get(e.value) if e.kind == "var" else None
        if name is None:
            raise SimulationError("a bulk copy needs the address of a tensor map that is a parameter")
        return name

    def shared_site(self, kind: str) -> int:
        """A site for messages, of an access whose place is known only when it runs."""
        place = next((p for p in self.layout.places.values() if p.space == "shared"), None)
        if place is None:
            raise SimulationError("the program has no shared memory")
        return self.site(kind, place.buffer, 1).number

    # ---- warp group products --------------------------------------------------------------------------------------------

    def wgmma(self, tokens: list[str], operands: list[Expression]) -> None:
        """``wgmma.*``."""
        what = tokens[0]
        if what != "mma_async":
            self.executes(Counter(wait=1))
            argument = self.text(operands[0]) if operands else ""
            self.source.line(
                f"rt.products.{ {'fence': 'fence', 'commit_group': 'commit', 'wait_group': 'wait'}[what] }({argument})"
            )
            return
        name = ".".join(["wgmma", *tokens])
        product = Product.of(name, self.layout.program.target)
        count = product.registers
        d, rest = operands[:count], operands[count:]
        in_registers = (
            len(rest) >= 4 and rest[0].dtype == "uint32" and rest[1].dtype == "uint32" and rest[2].dtype == "uint32"
        )
        a = rest[:4] if in_registers else []
        rest = rest[4:] if in_registers else rest
        descriptors, rest = (rest[:1], rest[1:]) if in_registers else (rest[:2], rest[2:])
        accumulate, rest = rest[0], rest[1:]
        numbers = [int(e.value) if e.kind == "const" else 0 for e in rest]
        signs = (1, 1) if len(numbers) < 2 else (numbers[0], numbers[1])
        turned = (*([0] if in_registers else []), *numbers[2:]) if product.transposes else (0, 0)
        if any(sign not in SIGNS for sign in signs) or len(turned) != 2:
            raise SimulationError(f"{name} with operands the simulator does not understand")
        self.executes(Counter(matrix=1))
        self._products = True
        try:
            rows = self.register_rows(d)
            a_rows = "None" if not a or self.consecutive(a) is None else self.register_rows(a)
            words = self.registers(a) if a_rows != "None" else "None"
        finally:
            self._products = False
        if a and a_rows == "None":
            words = self.registers(a)
        function = self.source.hoist(f"rt.products.product({name!r})", "f")
        bits = ", ".join(self.text(e) for e in descriptors)
        self.source.line(
            f"rt.products.run({function}, {self.shared_site('wgmma')}, {rows}, {words}, {a_rows}, ({bits},), "
            f"{self.text(accumulate)}, {signs}, {turned}, {self.operation}, {self.mask})"
        )

    def register_rows(self, operands: list[Expression]) -> str:
        """Source of (key of a register array, rows in it)."""
        run = self.consecutive(operands)
        if run is not None:
            start = run[1].linear.source()
            return f"({run[0].key}, slice({start}, {start} + {len(operands)}))"
        indices = [self.integer(operand.args[0]) if operand.kind == "load" else None for operand in operands]
        buffers = {operand.value.key for operand in operands if operand.kind == "load"}
        if len(buffers) != 1 or not all(isinstance(i, Uniform) and i.linear.is_const for i in indices):
            raise SimulationError("the accumulators of a warp group product must be registers of one array")
        numbers = [i.linear.const for i in indices if isinstance(i, Uniform)]
        return f"({buffers.pop()}, {self.source.hoist(f'np.array({numbers})')})"
