"""What a power cut may leave of a folder: a model of what is durable, kept while real code writes there.

The calls to the operating system are observed, and still made. Only fsync makes anything durable: of a file
its content, of a folder its names. So around each call the disk may be in any of many states: each name that
was made, renamed or removed since its folder's last fsync may be so on disk or not, independently of the
others, and content that was not fsynced may be there, missing, or torn. A rename may leave both names.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

OBSERVED = ("open", "mkdir", "rename", "unlink", "fsync", "pwrite", "pwritev")

DiskState = dict[str, bytes | None]
"""What is on disk: the content of each file, and None for each folder, by path below the observed folder."""


@dataclass(eq=False)
class _Node:
    """A file or folder, whatever its names; `path` is None once it has none."""

    path: Path | None
    is_folder: bool
    durable: bytes = b""
    last: bytes = b""

    def content(self) -> bytes:
        if self.path is not None:
            self.last = self.path.read_bytes()
        return self.last


@dataclass(frozen=True)
class _NameChange:
    """A name that comes, goes, or both: a rename."""

    folder: str
    removes: str | None
    adds: str | None
    node: _Node


class ObservedFolder:
    """What is durable below `root`, all of which counts as durable at the beginning."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[str, _Node] = {}
        for path in sorted(root.rglob("*")):
            node = _Node(path, path.is_dir())
            node.durable = b"" if node.is_folder else node.content()
            self._names[self._name(path)] = node
        self._durable_names = dict(self._names)
        self._pending: list[_NameChange] = []

    @contextmanager
    def observe(self, around_each_call: Callable[[], None]) -> Iterator[None]:
        """Follow what this process does; `around_each_call` is called before and after each call."""
        lock = threading.RLock()

        def observed(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            note = getattr(self, f"_{name}", None)

            def call(*arguments: Any, **options: Any) -> Any:
                with lock:
                    around_each_call()
                    path = self._path_of(arguments[0])
                    if path is None or note is None:
                        outcome = real(*arguments, **options)
                    else:
                        outcome = note(path, lambda: real(*arguments, **options), *arguments[1:])
                    around_each_call()
                    return outcome

            return call

        with pytest.MonkeyPatch.context() as patched:
            for name in OBSERVED:
                patched.setattr(os, name, observed(name, getattr(os, name)))
            yield

    def after_power_cut(self, chance: random.Random | None, *, all_is_durable: bool = False) -> DiskState:
        """One state that the disk may have: that with no more than it must, with all, or one by `chance`."""
        names = dict(self._durable_names)
        for change in self._pending:
            if all_is_durable or (chance and chance.random() < 0.5):
                both_names = chance and change.adds and chance.random() < 0.25
                if change.removes and not both_names:
                    names.pop(change.removes, None)
                if change.adds:
                    names[change.adds] = change.node
        state: DiskState = {}
        for name, node in sorted(names.items()):
            folder = name.rpartition("/")[0]
            if folder and folder not in state:
                continue
            state[name] = None if node.is_folder else _left_of(node, chance, all_is_durable)
        return state

    # What each call changes; `name` is the path that it is about

    def _open(self, path: Path, call: Callable[[], int], *_: Any) -> int:
        is_new = not path.exists()
        descriptor = call()
        if is_new:
            self._add(path, is_folder=False)
        return descriptor

    def _mkdir(self, path: Path, call: Callable[[], None], *_: Any) -> None:
        call()
        self._add(path, is_folder=True)

    def _rename(self, path: Path, call: Callable[[], None], to: Path, *_: Any) -> None:
        replaced = self._names.get(self._name(Path(to)))
        if replaced is not None:
            replaced.content()
        call()
        if replaced is not None:
            replaced.path = None
        node = self._names.pop(self._name(path))
        node.path = Path(to)
        self._names[self._name(node.path)] = node
        self._change(path.parent, path, node.path, node)

    def _unlink(self, path: Path, call: Callable[[], None], *_: Any) -> None:
        node = self._names.get(self._name(path))
        if node is not None:
            node.content()
        call()
        assert node is not None
        del self._names[self._name(path)]
        node.path = None
        self._change(path.parent, path, None, node)

    def _fsync(self, path: Path, call: Callable[[], None], *_: Any) -> None:
        call()
        if path.is_dir():
            folder = self._name(path)
            for change in self._pending:
                if change.folder == folder:
                    self._durable_names.pop(change.removes or "", None)
                    if change.adds:
                        self._durable_names[change.adds] = change.node
            self._pending = [change for change in self._pending if change.folder != folder]
        else:
            node = self._names[self._name(path)]
            node.durable = node.content()

    def _add(self, path: Path, *, is_folder: bool) -> None:
        node = _Node(path, is_folder)
        self._names[self._name(path)] = node
        self._change(path.parent, None, path, node)

    def _change(self, folder: Path, removed: Path | None, added: Path | None, node: _Node) -> None:
        removes, adds = (None if path is None else self._name(path) for path in (removed, added))
        self._pending.append(_NameChange(self._name(folder), removes, adds, node))

    def _name(self, path: Path) -> str:
        name = str(path.relative_to(self._root))
        return "" if name == "." else name

    def _path_of(self, target: Any) -> Path | None:
        """The path below `root` that a call is about, by name or by descriptor."""
        path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else Path(target)
        return path if path.is_relative_to(self._root) else None


def _left_of(node: _Node, chance: random.Random | None, all_is_durable: bool) -> bytes:
    content = node.content()
    if all_is_durable or content == node.durable:
        return content
    if chance is None:
        return node.durable
    cut = chance.randrange(len(content) + 1)
    zeros = bytes(len(content) - cut)
    return chance.choice([node.durable, content, content[:cut], content[:cut] + zeros])


def materialize(state: DiskState, root: Path) -> None:
    """Make a folder that holds what is on the disk."""
    root.mkdir()
    for name, content in sorted(state.items()):
        if content is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(content)
