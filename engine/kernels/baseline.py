"""The processors that kernels are compiled for when they are to run on other machines than this one.

A wheel's kernels may use the features of its architecture's baseline and no others. Kernels that are compiled
on the machine that runs them use all that its processor has.
"""

from __future__ import annotations

import platform

from engine.dataclass import dataclass


@dataclass(frozen=True)
class Baseline:
    """The least processor that code is compiled for."""

    name: str
    """LLVM's name of it."""
    features: tuple[str, ...]
    """LLVM's names of the features that the code may use."""

    @property
    def flags(self) -> str:
        """The features as LLVM takes them."""
        return ",".join(f"+{feature}" for feature in self.features)


_X86_64_V3 = "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sse3 sse4.1 sse4.2 ssse3 xsave"

_BASELINES = {
    # AVX2 and what came with it, and the carry-less multiplication of checksums.
    "x86_64": Baseline("x86-64-v3", (*_X86_64_V3.split(), "pclmul")),
    "aarch64": Baseline("generic", ("neon",)),
}


def baseline() -> Baseline | None:
    """The baseline of this machine's architecture; None if there is none."""
    return _BASELINES.get(platform.machine())
