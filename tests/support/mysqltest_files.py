"""The statements in files of `mysqltest`, the program for the servers' own tests.

A file has one command or statement after the other, each up to a delimiter; lines that begin with `--` are
commands, too. Commands, and statements that contain their variables, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMANDS = """
    append_file assert cat_file change_user character_set chmod connect connection copy_files?[a-z_]* dec
    die diff_files dirty_close disable_[a-z_]+ disconnect echo enable_[a-z_]+ end end_timer error evalp
    exec execw exit file_exists force-cpdir force-rmdir horizontal_results if inc let list_files[a-z_]*
    lowercase_result mkdir move_file output partially_sorted_result perl ping ps_protocol query_attributes
    query_get_value reap remove_files?[a-z_]* replace_column replace_numeric_round replace_regex
    replace_result require reset_connection result_format rmdir save_master_pos send_eval send_quit
    send_shutdown shutdown_server skip skip_if_hypergraph sleep sorted_result source start_timer
    sync_slave_with_master sync_with_master system vertical_results wait_for_slave_to_stop while
    write_file
"""
_COMMAND = re.compile(rf"(?:{'|'.join(_COMMANDS.split())})\b", re.IGNORECASE)
_SENT = re.compile(r"(?:eval|send|query|query_vertical|query_horizontal)\s+", re.IGNORECASE)
"""Commands whose argument is a statement."""
_VARIABLE = re.compile(r"\$\w")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/|(?:#|-- )[^\n]*", re.DOTALL)
_INLINE_FILE = re.compile(r"(?:--\s*)?(?:perl|write_file|append_file)\b", re.IGNORECASE)
_BLOCK = re.compile(r"(?:if|while)\s*\(", re.IGNORECASE)
_DELIMITER = re.compile(r"(?:--\s*)?delimiter\s+(?P<new>.*)", re.IGNORECASE)


def statements_of(text: str) -> Iterator[str]:
    """The statements of a file, in order, without delimiters."""
    delimiter, rest = ";", ""
    lines = iter(text.split("\n"))
    for line in lines:
        stripped = line.strip()
        if not rest.strip():
            if match := _DELIMITER.match(stripped):
                delimiter = match["new"].strip().removesuffix(delimiter).strip() or delimiter
                continue
            if _INLINE_FILE.match(stripped):
                _skip_inline_file(lines)
                continue
            if stripped.startswith(("--", "#")) or stripped in ("", "{", "}") or _BLOCK.match(stripped):
                continue
        rest += line + "\n"
        while (end := _end(rest, delimiter)) is not None:
            statement, rest = rest[:end].strip(), rest[end + len(delimiter) :]
            sent = _SENT.sub("", statement, count=1) if _SENT.match(statement) else statement
            if sent and not _COMMAND.match(sent) and not _VARIABLE.search(_QUOTED.sub("", sent)):
                yield sent


def _skip_inline_file(lines: Iterator[str]) -> None:
    """Step over the content of a file, which ends with a line of its own."""
    for line in lines:
        if line.strip() == "EOF":
            return


def _end(text: str, delimiter: str) -> int | None:
    """Where the first delimiter is that is in neither quotes nor a comment."""
    position = 0
    while position < len(text):
        if text.startswith(delimiter, position):
            return position
        if text[position] in "'\"`#/-":
            match = _QUOTED.match(text, position) or _COMMENT.match(text, position)
            if match is None and text[position] in "'\"`":
                return None
            position = match.end() if match else position + 1
        else:
            position += 1
    return None
