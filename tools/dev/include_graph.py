#!/usr/bin/env python3
"""Draws which folder includes which, as the sources have it: include_graph.py OUT.svg, `make includes`.

A folder stands above all that it includes. An arrow that follows from others is left out: where a -> b -> c, a -> c is not drawn.
"""

import pathlib
import sys

from check_includes import cycle_in, folder_graph

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOX_HEIGHT, ROW, GAP, CHARACTER, MARGIN = 26, 74, 14, 6.6, 16


def reachable(graph, folder):
    seen, left = set(), [folder]
    while left:
        for other in graph[left.pop()] - seen:
            seen.add(other)
            left.append(other)
    return seen


def reduced(graph):
    """Without arrows that follow from others."""
    return {folder: {other for other in others if not any(other in reachable(graph, via) for via in others - {other})}
            for folder, others in graph.items()}


def level(graph, folder):
    return 1 + max((level(graph, other) for other in graph[folder]), default=-1)


def place(graph):
    """Folder -> (x, y, width) of its box, rows centred, the lowest at the bottom."""
    rows = {}
    for folder in sorted(graph):
        rows.setdefault(level(graph, folder), []).append(folder)
    widths = {folder: CHARACTER * len(folder) + 16 for folder in graph}
    total = max(sum(widths[f] for f in row) + GAP * (len(row) - 1) for row in rows.values())
    places = {}
    for number, row in rows.items():
        x = MARGIN + (total - sum(widths[f] for f in row) - GAP * (len(row) - 1)) / 2
        for folder in row:
            places[folder] = (x, MARGIN + (max(rows) - number) * ROW, widths[folder])
            x += widths[folder] + GAP
    return places, total + 2 * MARGIN, 2 * MARGIN + max(rows) * ROW + BOX_HEIGHT


def draw(graph):
    places, width, height = place(graph)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="monospace" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>',
             '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
             '<path d="M0 0 8 4 0 8z" fill="#557"/></marker></defs>']
    for folder, others in sorted(reduced(graph).items()):
        x, y, w = places[folder]
        for other in sorted(others):
            x2, y2, w2 = places[other]
            lines.append(f'<line x1="{x + w / 2:.0f}" y1="{y + BOX_HEIGHT}" x2="{x2 + w2 / 2:.0f}" y2="{y2}" stroke="#99b" '
                         'marker-end="url(#a)"/>')
    for folder, (x, y, w) in sorted(places.items()):
        lines.append(f'<rect x="{x:.0f}" y="{y}" width="{w:.0f}" height="{BOX_HEIGHT}" rx="4" fill="#eef2fb" stroke="#557"/>')
        lines.append(f'<text x="{x + w / 2:.0f}" y="{y + 17}" text-anchor="middle">{folder}</text>')
    return "\n".join(lines + ["</svg>", ""])


def main():
    graph = {folder: others for folder, others in folder_graph(ROOT).items() if not folder.startswith(("examples", "tools/cmake"))}
    cycle = cycle_in(graph)
    if cycle:
        sys.exit("directories include each other: " + " -> ".join(cycle))
    pathlib.Path(sys.argv[1]).write_text(draw(graph), encoding="utf-8")


if __name__ == "__main__":
    main()
