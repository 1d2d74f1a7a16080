"""The alignment that a record batch needs so that its body can be written with direct I/O.

Copying into the page cache takes more CPU time than decoding; with direct I/O the disk reads a large body
from the decoder's memory. For that the body begins at a multiple of a page, in memory and in the file, and
its length is a multiple of a page. If a file system does not support it, the body is written like any other.
"""

DIRECT_PAGE = 4096
"""The alignment in bytes; a multiple of every disk's block size."""
DIRECT_BYTES = 1 << 20
"""Smaller bodies, in bytes, go through the page cache: with direct I/O each would wait for the disk."""


def to_whole_pages(offset: int) -> int:
    """The number of bytes from `offset` to the next multiple of a page."""
    return -offset % DIRECT_PAGE
