"""The generated blocks of a page: what stands between <!-- NAME --> and <!-- /NAME -->, each of which a page has once."""
import sys


def split(text: str, name: str, page: str) -> tuple[str, str, str]:
    """What is before the block, the block, and what is after it; `page` is for the error."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        sys.exit(f"{page}: expected the markers <!-- {name} --> and {end} once each, in this order")
    before, rest = text.split(begin)
    block, after = rest.split(end)
    return before + begin, block, end + after


def replaced(text: str, name: str, block: str, page: str) -> str:
    """The text with another block, which ends with a newline."""
    before, _, after = split(text, name, page)
    return before + block + after
