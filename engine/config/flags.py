"""Declared settings as flags of an `argparse` parser."""

from __future__ import annotations

import argparse
from dataclasses import MISSING
from typing import TYPE_CHECKING, NoReturn

from engine.config.setting import declared_settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_UNSHOWN_DEFAULTS = (MISSING, None, (), False, 0)


def add_flags(parser: argparse.ArgumentParser, owner: type[DataclassInstance]) -> None:
    """Add a flag for each setting; the flags have no defaults, so that those that were given are known."""
    for declared in declared_settings(owner):
        text = declared.setting.help
        if declared.default not in _UNSHOWN_DEFAULTS:
            text += f" [{declared.default}]"
        if declared.kind is bool:
            parser.add_argument(declared.flag, action="store_const", const=True, default=None, help=text)
        else:
            metavar = "|".join(declared.choices) or declared.name.upper()
            parser.add_argument(declared.flag, default=None, metavar=metavar, help=text)


class _RefusePassword(argparse.Action):
    """Ends with an error that does not repeat the password."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(
            "a password is not accepted as an argument, which every user of this machine could read: give it "
            "as --password-env, --password-file or --defaults-file, or enter it at the prompt"
        )


def refuse_password(parser: argparse.ArgumentParser) -> None:
    """Refuse `-p` and `--password`, by which MySQL's programs take a password."""
    parser.add_argument("-p", "--password", nargs="?", action=_RefusePassword, help=argparse.SUPPRESS)
