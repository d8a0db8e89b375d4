"""SASS opcode -> instruction class, for every architecture from Ampere on.

The table holds base opcodes (the part before the first dot).  Names: "CUDA Binary Utilities", instruction set reference of
each architecture (NVIDIA), and listings of nvdisasm 13.5.  An opcode that is not listed is class ``other``.
"""

from __future__ import annotations

from collections.abc import Iterable


def _table(rows: dict[str, Iterable[str]]) -> dict[str, str]:
    return {opcode: klass for klass, opcodes in rows.items() for opcode in opcodes}


_CLASS = _table(
    {
        "matrix": (
            "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA".split()
        ),
        "fma": "FFMA FFMA2 FFMA32I DFMA HFMA2".split(),
        "float": (
            "FADD FADD2 FADD32I FMUL FMUL2 FMUL32I FMNMX FMNMX3 FSET FSETP FCHK FSWZADD FHADD FHFMA "
            "DADD DMUL DMNMX DSET DSETP HADD2 HADD2_32I HMUL2 HMNMX2 HSET2 HSETP2 VHMNMX UFADD UFMUL UFMNMX UFSETP"
        ).split(),
        "integer": (
            "IADD IADD2 IADD3 IADD32I IADD64 IMAD IMUL IDP IDP4A ISCADD LEA LOP LOP3 LOP32I PLOP3 SHF SHL SHR ISETP ISET PSETP "
            "IMNMX IABS VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 BFE BFI BMSK BREV FLO POPC SGXT XMAD QSPC "
            "UIADD3 UIADD64 UIMAD UIMNMX UIABS ULEA ULOP ULOP3 UPLOP3 USHF USHL USHR UISETP UPSETP UBMSK UBREV UFLO UPOPC USGXT "
            "UVIADD UVIMNMX UVIRTCOUNT"
        ).split(),
        "convert": "F2F F2I F2FP F2IP I2F I2FP I2I I2IP FRND UF2F UF2FP UF2I UI2F UI2FP UFRND".split(),
        "special": ["MUFU"],
        "move": (
            "MOV MOV32I MOVM SEL FSEL PRMT SHFL UMOV USEL UFSEL UPRMT R2UR R2P P2R UP2UR UR2UP B2R R2B S2R S2UR "
            "CS2R CS2UR GETLMEMBASE VOTE VOTEU MATCH REDUX CREDUX ELECT UGETNEXTWORKID"
        ).split(),
        "global_load": "LD LDG TEX TLD TLD4 SULD".split(),
        "global_store": "ST STG RED REDG ATOM ATOMG SUST SURED SUATOM".split(),  # an atomic that returns a value too
        "shared_load": ["LDS"],
        "shared_store": "STS STSM ATOMS".split(),
        "ldmatrix": ["LDSM"],
        "async_copy": (
            "LDGSTS LDGDEPBAR ARRIVES UBLKCP UBLKPF UBLKRED UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UTCCP"
        ).split(),
        "local_load": ["LDL"],
        "local_store": ["STL"],
        "barrier": "BAR SYNCS UCGABAR_ARV UCGABAR_WAIT MEMBAR ERRBAR FENCE CGAERRBAR UTCBAR WARPSYNC ENDCOLLECTIVE".split(),
        "wait": "DEPBAR WARPGROUP WARPGROUPSET NANOSLEEP YIELD ACQBULK".split(),
        "branch": (
            "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BREAK BSSY BSYNC BMOV KILL BPT RPCMOV COLLECTIVE RTT LEPC PREEXIT".split()
        ),
        "constant_load": "LDC LDCU ULDC".split(),
    }
)


def classify(opcode: str, operands: str, predicate: str = "") -> str:
    """The class of one instruction; ``predicate`` such as ``@!P0``, empty where there is none.

    Some do not mean what they are named after: integer multiply-adds and packed half adds that only move or convert a
    value (``IMAD.MOV.U32``, ``HFMA2 R5, -RZ, RZ, ..``, ``HADD2.F32 R3, -RZ, R6.H0_H0``), and instructions that are never
    executed and only take up time (``@!PT LDS RZ, [RZ]`` in front of LDGSTS), which are ``other``.
    """
    if predicate in ("@!PT", "@!UPT"):
        return "other"
    base, _, modifiers = opcode.partition(".")
    if base == "IMAD" and modifiers.startswith("MOV"):
        return "move"
    if base in ("HFMA2", "HADD2"):
        sources = operands.split(", ")[1:]
        if base == "HADD2" and modifiers.startswith("F32"):
            return "convert"
        if base == "HFMA2" and sources[:2] == ["-RZ", "RZ"]:
            return "move"  # the only product is zero: a constant for a register
    return _CLASS.get(base, "other")
