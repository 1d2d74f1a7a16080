"""Prevents the import of pandas in this process, which would cost a fifth of a second and 50 MB.

pyarrow tries once, before it creates its first array, to import pandas, and works without it if that fails.
The engine does not use pandas.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not imported in this process", name=name)


if "pandas" not in sys.modules:
    sys.meta_path.insert(0, _NoPandas())
