"""What a record batch must be like so that its body can go to disk past the page cache.

Copying into the page cache takes more of a processor than decoding does; a disk fetches large bodies from the
decoder's memory itself. For that the body stands at a multiple of a page, in memory as in the file, and is
whole pages long. Where a file system cannot do so, it is written like any other.
"""

DIRECT_PAGE = 4096
"""Bytes; a multiple of what any disk calls a block."""
DIRECT_BYTES = 1 << 20
"""Smaller bodies go through the page cache: they would have to wait for the disk one by one."""


def to_whole_pages(place: int) -> int:
    """How many bytes from there to the next multiple of a page."""
    return -place % DIRECT_PAGE
