"""Lines over a logarithmic axis of lengths, panels side by side, as SVG that reads on light and on dark pages."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, ABOVE, BELOW, TITLE, LEGEND = 420, 280, 62, 18, 30, 46, 30, 20
STYLE = """<style>
  text { font: 12px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #3c4450; }
  .title { font-size: 14px; font-weight: 600; } .grid { stroke: #d5d9de; } .line { fill: none; stroke-width: 2.25; }
  .c0 { stroke: #6b7280; stroke-dasharray: 7 5; } .c1 { stroke: #0b6fc2; } .c2 { stroke: #0a8f6a; } .c3 { stroke: #d1570a; }
  .c4 { stroke: #b0509b; } .c5 { stroke: #a07800; }
  @media (prefers-color-scheme: dark) { text { fill: #b6bec8; } .grid { stroke: #343b44; } }
</style>"""


def ticks(low, high):
    """1, 2, 5, 10, ... around the values."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    below = [mark for mark in marks if mark <= low] or marks[:1]
    above = [mark for mark in marks if mark >= high] or marks[-1:]
    return [mark for mark in marks if below[-1] <= mark <= above[0]]


def panel(x0, title, xlabel, lines):
    """`lines`: name -> [(length, value > 0)]; both axes logarithmic."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    marks = ticks(min(y for points in lines.values() for _, y in points), max(y for points in lines.values() for _, y in points))
    top, bottom = TITLE + ABOVE, TITLE + ABOVE + HEIGHT

    def at_x(x):
        span = math.log(xs[-1] / xs[0]) or 1
        return x0 + LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / xs[0]) / span

    def at_y(y):
        return bottom - HEIGHT * math.log(y / marks[0]) / (math.log(marks[-1] / marks[0]) or 1)

    parts = [f'<text x="{x0 + LEFT}" y="{top - 10}">{escape(title)}</text>',
             f'<text x="{x0 + LEFT + (WIDTH - LEFT - RIGHT) / 2:.0f}" y="{bottom + 36}" text-anchor="middle">{escape(xlabel)}</text>']
    for mark in marks:
        parts.append(f'<line class="grid" x1="{x0 + LEFT}" x2="{x0 + WIDTH - RIGHT}" y1="{at_y(mark):.1f}" y2="{at_y(mark):.1f}"/>'
                     f'<text x="{x0 + LEFT - 6}" y="{at_y(mark) + 4:.1f}" text-anchor="end">{mark:g}</text>')
    for x in xs:
        parts.append(f'<text x="{at_x(x):.1f}" y="{bottom + 18}" text-anchor="middle">{x:g}</text>')
    for color, points in enumerate(lines.values()):
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline class="line c{color % 6}" points="{path}"/>')
    return parts


def draw(title, xlabel, panels):
    """`panels`: [(title, lines)], the same names in the same order in all of them."""
    names = list(panels[0][1])
    width, height = WIDTH * len(panels), TITLE + ABOVE + HEIGHT + BELOW + LEGEND
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">', STYLE,
             f'<text class="title" x="{LEFT}" y="20">{escape(title)}</text>']
    for i, (name, lines) in enumerate(panels):
        parts += panel(i * WIDTH, name, xlabel, lines)
    for i, name in enumerate(names):
        x = LEFT + i * (width - LEFT) / len(names)
        parts.append(f'<line class="line c{i % 6}" x1="{x:.0f}" x2="{x + 24:.0f}" y1="{height - 12}" y2="{height - 12}"/>'
                     f'<text x="{x + 30:.0f}" y="{height - 8}">{escape(name)}</text>')
    return "\n".join(parts + ["</svg>", ""])
