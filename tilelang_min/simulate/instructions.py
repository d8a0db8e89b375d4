"""Barriers and vendor instructions: PTX calls and LLVM intrinsics as calls of the machine.

A PTX call arrives as ``tirx.ptx.<entry>(operands in PTX order..., modifier tokens as text)``; destinations are loads in
operand position.
"""

from __future__ import annotations

from collections import Counter

from tilelang_min.errors import SimulationError
from tilelang_min.program.atomics import PREFIX as ATOMIC
from tilelang_min.program.atomics import AtomicCall
from tilelang_min.simulate.expressions import Expressions
from tilelang_min.simulate.matrix import find_instruction
from tilelang_min.simulate.tree import Buffer, Expression
from tilelang_min.simulate.values import Address, Array, Uniform, Value
from tilelang_min.targets.atomics import counts_ones, is_loop

MATRICES = {"x1": 1, "x2": 2, "x4": 4}

SCHEDULING = {"llvm.amdgcn.sched.barrier", "llvm.amdgcn.sched.group.barrier", "llvm.amdgcn.iglp.opt"}
"""Calls that tell the vendor's compiler how to order instructions, and do nothing when they run."""

DOTS = ("llvm.x86.avx512.vpdpbusd.", "llvm.x86.avx512.pmaddw.d.", "llvm.x86.avx2.pmadd.wd", "llvm.x86.sse2.pmadd.wd")
"""Begins of the names of x86 instructions that add up products of neighbouring integers in each lane."""

SHUFFLES = {"tirx.tvm_warp_shuffle_xor", "llvm.amdgcn.ds.swizzle", "llvm.amdgcn.ds.bpermute"}
"""Calls by which each lane of a warp reads a register of another lane."""


class Instructions(Expressions):
    """Adds calls with effects to the expressions."""

    def executes(self, work: Counter[str]) -> None:
        """Counts instructions of the current operation."""
        raise NotImplementedError

    def write_registers(self, row: str, value: str) -> None:
        """Assigns to a view of registers, under the mask if there is one."""
        raise NotImplementedError

    def perform(self, call: Expression) -> None:
        """Writes a call made for its effect."""
        name: str = call.value
        if name in SCHEDULING:
            return
        if name == "tirx.tvm_storage_sync":
            self.executes(Counter(barrier=1))
            self.source.line(f"rt.barrier({self.operation}, {self.mask})")
            return
        if name == "tirx.call_extern" and str(call.args[0].value).startswith(ATOMIC):
            return self.atomic(str(call.args[0].value), call.args[1], call.args[2:])
        if name.startswith("tirx.ptx."):
            operands = [arg for arg in call.args if arg.kind != "text"]
            tokens = [arg.value for arg in call.args if arg.kind == "text" and arg.value]
            entry = name.removeprefix("tirx.ptx.").split("_")[0]
            if entry == "mma":
                return self.mma(".".join(["mma", *tokens]), operands)
            if entry == "ldmatrix":
                return self.ldmatrix(tokens, operands)
            if entry == "cp" and "async" in tokens and "bulk" not in tokens:
                return self.cp_async(tokens, operands)
            raise SimulationError(f"the simulator cannot execute the PTX instruction {'.'.join([entry, *tokens])}")
        raise SimulationError(f"the simulator has no rule for the call {name}")

    # ---- atomics ------------------------------------------------------------------------------------------------------

    def atomic(self, name: str, address: Expression, operands: tuple[Expression, ...]) -> None:
        """An update of one element, or of two neighbours, by every active lane."""
        call = AtomicCall.parse(name)
        place = self.pointer(address, call.space)
        values = ", ".join(self.array(operand).source for operand in operands)
        loop = is_loop(self.layout.program.target, call.space, call.kind)
        one = operands[0].kind == "const" and operands[0].value == 1
        ones = one and counts_ones(self.layout.program.target, call.space, call.kind)
        part = "atomic_loop" if loop else "atomic_increment" if ones else ""
        site = self.site("atomic", place.buffer, call.lanes, part=part)
        loads = self.site("load", place.buffer, call.lanes, part="atomic_loop").number if loop else None
        function = self.source.hoist(f"rt.atomic({site.number}, {loads}, {name!r})", "s")
        self.source.line(f"{function}({self.integers.array(place.offset).source}, {self.mask}, {values})")

    # ---- matrix instructions ------------------------------------------------------------------------------------------

    def mma(self, name: str, operands: list[Expression]) -> None:
        """``mma.sync``: d, a, b, c registers in that order, of the types that the instruction names."""
        instruction = find_instruction(self.layout.program.target, name)
        a_count, b_count, c_count = (instruction.registers(matrix) for matrix in "abc")
        if len(operands) != 2 * c_count + a_count + b_count:
            raise SimulationError(f"{name} with {len(operands)} operands")
        d, rest = operands[:c_count], operands[c_count:]
        a, b, c = rest[:a_count], rest[a_count : a_count + b_count], rest[a_count + b_count :]
        for matrix, group in zip("abcc", (a, b, c, d), strict=True):
            wanted = getattr(instruction, f"{matrix}_operand")
            if any(operand.dtype != wanted for operand in group):
                raise SimulationError(f"{name} takes registers of type {wanted} for {matrix}")
        function = self.source.hoist(f"rt.matrix({name!r}, ())", "f")
        arguments = ", ".join(self.registers(group) for group in (a, b, c))
        self.executes(Counter(matrix=1))
        self.assign(d, f"{function}({arguments}{self.converged()})")

    def intrinsic(self, e: Expression) -> Value:
        """Exchanges between lanes.  MFMA: a, b and c in the types that the instruction names, then its modifiers."""
        name: str = e.value
        if name in SHUFFLES:
            return self.shuffle(name, e)
        if name.startswith(DOTS):
            *sums, left, right = (self.array(arg) for arg in e.args)
            product = f"dot(rt.spread({left.source}), rt.spread({right.source}), {e.lanes})"
            return Array(f"rt.spread({sums[0].source}) + {product}" if sums else product, e.dtype, e.lanes)
        if not name.startswith("llvm.amdgcn.mfma."):
            return super().intrinsic(e)
        modifiers = tuple(int(arg.value) if arg.kind == "const" else -1 for arg in e.args[3:])
        instruction = find_instruction(self.layout.program.target, name, modifiers)
        for matrix, arg in zip("abc", e.args[:3], strict=True):
            wanted = getattr(instruction, f"{matrix}_operand")
            if (arg.dtype if arg.lanes == 1 else f"{arg.dtype}x{arg.lanes}") != wanted:
                raise SimulationError(f"{name} takes {wanted} for {matrix}")
        function = self.source.hoist(f"rt.matrix({name!r}, {modifiers})", "f")
        a, b, c = (f"rt.rows({self.array(arg).source}, {arg.lanes})" for arg in e.args[:3])
        self.executes(Counter(matrix=1))
        result = self.source.fresh("x")
        self.source.line(f"{result} = {function}({a}, {b}, {c}{self.converged()})")
        return Array(result, e.dtype, e.lanes)

    def shuffle(self, name: str, e: Expression) -> Value:
        """An instruction by which each lane reads another lane's value."""
        if name == "tirx.tvm_warp_shuffle_xor":
            _, value, distance, width, _ = e.args
            if any(arg.kind != "const" for arg in (distance, width)):
                raise SimulationError("the simulator knows shuffles by constant distances only")
            pattern = f"rt.lanes_xor({int(distance.value)}, {int(width.value)})"
        elif name == "llvm.amdgcn.ds.swizzle":
            value, offset = e.args
            pattern = f"rt.lanes_swizzle({int(offset.value)})"
        else:
            address, value = e.args
            pattern = ""
        data = self.array(value)
        self.executes(Counter(move=1))
        result = self.source.fresh("x")
        if pattern:
            lanes = self.source.hoist(pattern, "f")
        else:
            lanes = f"rt.lanes_at({self.array(address).source})"
        self.source.line(f"{result} = rt.shuffle({data.source}, {lanes}, {self.mask}, {self.operation})")
        return Array(result, e.dtype, e.lanes)

    def converged(self) -> str:
        """Under a mask: a check that no warp is split, as a further argument of a warp-wide instruction."""
        return "" if self.mask is None else f", rt.whole_warps({self.mask}, {self.operation})"

    def registers(self, operands: list[Expression]) -> str:
        """Source text of operand registers as one array ``(registers, threads)``."""
        run = self.consecutive(operands)
        if run is not None:
            return self.register(run[0], run[1], len(operands)) if len(operands) > 1 else self.one_row(*run)
        return f"np.stack([{', '.join(f'rt.spread({self.array(operand).source})' for operand in operands)}])"

    def one_row(self, buffer: Buffer, index: Uniform) -> str:
        """A single register as an array of one row."""
        self.uses_register(buffer, index, 1)
        start = index.linear.source()
        name = self.source.hoist(f"rt.local({buffer.key})", "r")
        text = f"{name}[{start}:{start} + 1]"
        return self.source.hoist(text, "r") if index.linear.is_const else text

    def consecutive(self, operands: list[Expression]) -> tuple[Buffer, Uniform] | None:
        """The buffer and first index, where the operands are successive elements of one register array."""
        first: tuple[Buffer, Uniform] | None = None
        for i, operand in enumerate(operands):
            if operand.kind != "load" or operand.value.scope != "local" or operand.lanes != 1:
                return None
            index = self.integer(operand.args[0])
            if not isinstance(index, Uniform):
                return None
            if first is None:
                first = (operand.value, index)
                continue
            step = index.linear + first[1].linear.scaled(-1)
            if operand.value is not first[0] or not step.is_const or step.const != i:
                return None
        return first

    def assign(self, destinations: list[Expression], value: str) -> None:
        """Writes the rows of ``value`` to destination registers."""
        run = self.consecutive(destinations)
        if run is not None:
            row = self.register(run[0], run[1], len(destinations)) if len(destinations) > 1 else self.one_row(*run)
            self.write_registers(row, value)
            return
        result = self.source.fresh("x")
        self.source.line(f"{result} = {value}")
        for i, destination in enumerate(destinations):
            run = self.consecutive([destination])
            if run is None:
                raise SimulationError("a destination of an instruction is not a register")
            self.write_registers(self.register(run[0], run[1], 1), f"{result}[{i}]")

    # ---- shared memory ------------------------------------------------------------------------------------------------

    def ldmatrix(self, tokens: list[str], operands: list[Expression]) -> None:
        """``ldmatrix``: destinations, then one address a lane."""
        matrices = next((MATRICES[token] for token in tokens if token in MATRICES), 0)
        if not matrices or "m8n8" not in tokens or "b16" not in tokens or len(operands) != matrices + 1:
            raise SimulationError(f"the simulator cannot execute ldmatrix.{'.'.join(tokens)}")
        address = self.pointer(operands[-1], "shared")
        site = self.site("ldmatrix", address.buffer, matrices)
        transposed = "trans" in tokens
        if self.mask is None and not isinstance(address.offset, Array):
            base, offset = self.split(address.offset)
            function = self.source.hoist(f"rt.ldmatrix({site.number}, {transposed}, {base})", "s")
            value = f"{function}({offset})"
        else:
            function = self.source.hoist(f"rt.masked_ldmatrix({site.number}, {transposed})", "s")
            value = f"{function}({self.integers.array(address.offset).source}, {self.mask})"
        self.assign(operands[:-1], value)

    def cp_async(self, tokens: list[str], operands: list[Expression]) -> None:
        """``cp.async`` and its groups."""
        self.executes(Counter(async_copy=1))
        if "commit_group" in tokens:
            self.source.line(f"rt.commit_group({self.operation}, {self.mask})")
            return
        if "wait_group" in tokens or "wait_all" in tokens:
            left = operands[0].value if operands else 0
            self.source.line(f"rt.wait_group({left}, {self.operation}, {self.mask})")
            return
        width = int(operands[2].value) if operands[2].kind == "const" else 0
        if width not in (4, 8, 16) or ("cg" in tokens and width != 16) or len(operands) not in (3, 4):
            raise SimulationError(f"the simulator cannot execute cp.{'.'.join(tokens)} of {width} bytes")
        target, origin = self.pointer(operands[0], "shared"), self.pointer(operands[1], "global")
        size = self.array(operands[3]).source if len(operands) == 4 else str(width)
        kind = "cp_async_bypass" if "cg" in tokens else "cp_async"
        t_size, o_size = (self.layout.itemsize(p.buffer.dtype) for p in (target, origin))
        t_site = self.site(kind, target.buffer, width // t_size)
        o_site = self.site("load", origin.buffer, width // o_size, part=kind)
        numbers = f"{t_site.number}, {o_site.number}"
        if self.mask is None and not isinstance(target.offset, Array) and not isinstance(origin.offset, Array):
            (t_base, t_offset), (o_base, o_offset) = self.split(target.offset), self.split(origin.offset)
            function = self.source.hoist(f"rt.cp_async({numbers}, {t_base}, {o_base})", "s")
            self.source.line(f"{function}({t_offset}, {o_offset}, {size})")
            return
        function = self.source.hoist(f"rt.masked_cp_async({numbers})", "s")
        places = ", ".join(self.integers.array(p.offset).source for p in (target, origin))
        self.source.line(f"{function}({places}, {size}, {self.mask})")

    def pointer(self, e: Expression, space: str) -> Address:
        """The address that an operand computes."""
        value = self.value(e)
        if not isinstance(value, Address) or self.layout.place(value.buffer).space != space:
            raise SimulationError(f"an instruction needs a {space} address of a known buffer")
        return value
