"""Classes of GCN/CDNA instructions, by opcode.

Names are those of the CDNA 2, 3 and 4 instruction set manuals.  Encoding suffixes (``_e32``, ``_e64``, ``_sdwa``,
``_dpp``) do not matter.  An opcode that no rule knows is ``other``.
"""

from __future__ import annotations

import functools
import re

_SUFFIX = re.compile(r"_(?:e32|e64|sdwa|dpp|dpp8|dot2)$")

_FLOAT_TYPE = r"(?:f16|f32|f64|bf16)"

_RULES: tuple[tuple[str, str], ...] = (
    # Order matters: the first pattern that matches from the start of the opcode decides.
    (r"v_s?mfmac?_", "matrix"),
    (r"v_accvgpr_", "move"),
    (rf"v_(?:pk_)?(?:fma|fmac|mad|mac|fmaak|fmamk|madak|madmk)(?:_mix\w*)?(?:_legacy)?_{_FLOAT_TYPE}", "fma"),
    (r"v_(?:fma|mad)_mix", "fma"),
    (r"v_dot\d+c?_", "fma"),
    (r"v_div_fmas_", "fma"),
    (r"v_cvt_|v_bfe_f|v_frexp_exp", "convert"),
    (rf"v_(?:exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos|tanh)_(?:legacy_)?{_FLOAT_TYPE}", "special"),
    (rf"v_cmpx?_\w+_{_FLOAT_TYPE}", "float"),
    (
        rf"v_(?:pk_)?(?:add|sub|subrev|mul|max|min|max3|min3|med3|minimum3|maximum3|ldexp|floor|ceil|trunc|rndne|fract"
        rf"|frexp_mant|div_scale|div_fixup|mul_legacy|trig_preop)_{_FLOAT_TYPE}",
        "float",
    ),
    (
        r"v_(?:mov|cndmask|perm|swap|readlane|readfirstlane|writelane|pk_mov|alignbit|alignbyte|permlane|bfi_move"
        r"|pack)_?",
        "move",
    ),
    (r"ds_(?:bpermute|permute|swizzle)_", "move"),
    (r"v_nop", "other"),
    (r"v_", "integer"),
    (r"ds_read|ds_load|ds_consume", "shared_load"),
    (r"ds_write|ds_store", "shared_store"),
    (r"ds_\w*(?:_rtn_|wrxchg|cmpst|cmpswap)", "shared_load"),
    (r"ds_nop", "other"),
    (r"ds_", "shared_store"),
    (r"(?:global|flat|buffer|tbuffer)_load_lds_|buffer_load_\w+_lds", "async_copy"),
    (r"scratch_load", "local_load"),
    (r"scratch_store", "local_store"),
    (r"(?:global|flat|buffer|tbuffer)_load", "global_load"),
    (r"(?:global|flat|buffer|tbuffer)_(?:store|atomic)", "global_store"),
    (r"(?:global|buffer)_(?:wbinv|inv|wbl2|wb)", "other"),
    (r"s_(?:load|buffer_load|scratch_load)", "constant_load"),
    (r"s_barrier", "barrier"),
    (r"s_waitcnt|s_wait_", "wait"),
    (r"s_c?branch|s_setpc|s_swappc|s_call|s_getpc|s_endpgm|s_rfe|s_trap", "branch"),
    (r"s_(?:mov|movk|cmov|cmovk|cselect)_", "move"),
    (
        r"s_(?:nop|sleep|setprio|sethalt|icache_inv|dcache\w*|sendmsg\w*|getreg|setreg\w*|memtime|memrealtime|code_end"
        r"|ttracedata\w*|sched_\w*|clause|inst_prefetch|incperflevel|decperflevel|set_gpr_idx\w*)",
        "other",
    ),
    (r"s_", "integer"),
)

_COMPILED = tuple((re.compile(pattern), name) for pattern, name in _RULES)


@functools.lru_cache(maxsize=4096)
def classify(opcode: str) -> str:
    """Class (one of ``INSTRUCTION_CLASSES``) of an opcode such as ``v_mfma_f32_32x32x8_f16`` or ``ds_read2_b64``."""
    plain = _SUFFIX.sub("", opcode)
    for pattern, name in _COMPILED:
        if pattern.match(plain):
            return name
    return "other"
