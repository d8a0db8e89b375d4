"""AMD: thread program -> code object (hsaco), GCN listing and resources, for gfx90a, gfx942 and gfx950.

Road: TVM prints LLVM text without optimising (:mod:`.llvm_text`); the text is repaired (:mod:`.patch`) and gets debug
locations of tile operations (:mod:`tilelang_min.codegen.llvm_lines`); clang optimises and assembles, ld.lld links
(:mod:`.toolchain`); the listing (:mod:`.listing`) and the metadata note (:mod:`.code_object`) are read back.
"""

from tilelang_min.codegen.amd.generator import OPTIONS, generate

__all__ = ["OPTIONS", "generate"]
