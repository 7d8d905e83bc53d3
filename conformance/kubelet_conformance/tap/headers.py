"""Header blocks of HTTP/2 (HPACK, RFC 7541), read fast.

The tables and the Huffman code are those of the `hpack` library; its decoder spends most of its time on
things that a tap does not need. Two facts make this one quick: a block that leaves the dynamic table as it
is means the same until something changes that table, and short strings come again and again.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from hpack.exceptions import HPACKError
from hpack.hpack import decode_integer
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from kubelet_conformance.tap.errors import UndecodableError

HEADER_BYTES_MAX: Final = 1 << 20
"""The longest header block, packed or unpacked, and the largest dynamic table, in bytes."""
_TABLE_BYTES: Final = 4096
"""How large a dynamic table may be until the peer that reads it allows more."""
_KNOWN_BLOCKS_MAX: Final = 256
_KNOWN_BYTES_MAX: Final = 512
"""The longest block that is remembered."""
_SHORT_STRING: Final = 64
_ENTRY_BYTES: Final = 32
"""What a field counts beside its bytes (RFC 7541, 4.1)."""

_INDEXED: Final = 0x80
_LONG_INDEX: Final = 0xFF
_LITERAL_KEPT: Final = 0x40
_TABLE_SIZE: Final = 0x20
_HUFFMAN: Final = 0x80


class HeaderReader:
    """The header blocks of one direction of one connection, in order."""

    def __init__(self) -> None:
        self._table = HeaderTable()
        self._size_max = _TABLE_BYTES
        self._known: dict[bytes, Mapping[bytes, bytes]] = {}
        """What blocks mean as long as the table is as it is."""

    def allow(self, table_bytes: int) -> None:
        """The reading peer allows a table of this many bytes (SETTINGS_HEADER_TABLE_SIZE).

        The writer states at the head of a block which size it takes. Until it does the old size holds, so a
        smaller bound changes nothing yet, and a larger one only what the writer may state.
        """
        self._size_max = min(max(self._size_max, table_bytes), HEADER_BYTES_MAX)

    def read(self, block: bytes) -> Mapping[bytes, bytes]:
        """The fields of a block by name; of a name that comes twice the last.

        Raises:
            UndecodableError: It is no header block. Nothing can be read after it.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        try:
            headers, changed = self._fields(block)
        except (HPACKError, IndexError) as error:
            raise UndecodableError(f"a header block that HPACK does not know: {error}") from None
        if changed or len(self._known) >= _KNOWN_BLOCKS_MAX:
            self._known.clear()
        if not changed and len(block) <= _KNOWN_BYTES_MAX:
            self._known[block] = headers
        return headers

    def _fields(self, block: bytes) -> tuple[dict[bytes, bytes], bool]:
        """The fields, and whether the table was changed by them."""
        table = self._table
        headers: dict[bytes, bytes] = {}
        changed = False
        at, size = 0, 0
        while at < len(block):
            first = block[at]
            if _INDEXED <= first < _LONG_INDEX:
                # Most fields are this one byte.
                name, value = table.get_by_index(first - _INDEXED)
                at += 1
            elif first & _INDEXED:
                index, at = _integer(block, at, 7)
                name, value = table.get_by_index(index)
            elif not first & _LITERAL_KEPT and first & _TABLE_SIZE:
                at = self._resize(block, at)
                changed = True
                continue
            else:
                kept = first & _LITERAL_KEPT
                index, at = _integer(block, at, 6 if kept else 4)
                if index:
                    name = table.get_by_index(index)[0]
                else:
                    name, at = _string(block, at)
                value, at = _string(block, at)
                if kept:
                    table.add(name, value)
                    changed = True
            headers[name] = value
            size += len(name) + len(value) + _ENTRY_BYTES
            if size > HEADER_BYTES_MAX:
                raise UndecodableError(f"headers of more than {HEADER_BYTES_MAX} bytes")
        return headers, changed

    def _resize(self, block: bytes, at: int) -> int:
        size, at = _integer(block, at, 5)
        if size > self._size_max:
            raise UndecodableError(f"a header table of {size} bytes where {self._size_max} are allowed")
        self._table.maxsize = size
        return at


def _integer(block: bytes, at: int, prefix_bits: int) -> tuple[int, int]:
    """The number that begins at `at`, and where the next thing begins."""
    mask = (1 << prefix_bits) - 1
    number = block[at] & mask
    if number != mask:
        return number, at + 1
    number, used = decode_integer(block[at : at + 16], prefix_bits)
    return number, at + used


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    """The string that begins at `at`, and where the next thing begins."""
    packed = block[at] & _HUFFMAN
    length, at = _integer(block, at, 7)
    end = at + length
    if end > len(block):
        raise UndecodableError("a header block that is cut short")
    text = block[at:end]
    if packed:
        text = _unpacked(text) if length <= _SHORT_STRING else decode_huffman(text)
    return text, end


@lru_cache(maxsize=4096)
def _unpacked(text: bytes) -> bytes:
    return decode_huffman(text)
