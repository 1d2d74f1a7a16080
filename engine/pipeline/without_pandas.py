"""Keeps pandas out of this process, where it costs a fifth of a second and 50 MB that nobody uses.

pyarrow imports pandas, where that is installed, before it makes its first array. It looks once; what it
does not find then it does without.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is kept out of this process", name=name)


if "pandas" not in sys.modules:
    sys.meta_path.insert(0, _NoPandas())
