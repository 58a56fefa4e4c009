"""What a training run shows: a line of progress, and the loss curve as SVG."""

import os
import sys
import time

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 60, 16, 30, 44
POINTS = 300  # of the curve, each the mean of some steps
QUIET_SECONDS = 30  # between two lines where nobody sees a line change


def clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    """with Progress(...) as progress: one line that changes on a terminal, a line now and then elsewhere. What others write afterwards
    begins a line. Speeds are those of this process."""

    def __init__(self, step, steps, tokens_per_step, out=sys.stderr):
        self.first, self.steps, self.tokens, self.out = step, steps, tokens_per_step, out
        self.begin = self.shown = time.monotonic()
        self.terminal = out.isatty()
        self.loss, self.held_out, self.line_open = None, None, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.line_open:
            self.write("\n")

    def write(self, text, line_open=False):
        self.out.write(text)
        self.out.flush()
        self.line_open = line_open

    def cut(self, line):
        """To less than the width of the terminal: a line that wraps could not be written over."""
        return line[: (os.get_terminal_size(self.out.fileno()).columns or 80) - 1]

    def step(self, step, loss):
        self.loss = loss if self.loss is None else 0.95 * self.loss + 0.05 * loss
        now = time.monotonic()
        if now - self.shown < (0.2 if self.terminal else QUIET_SECONDS) and step < self.steps:
            return
        self.shown = now
        seconds = now - self.begin
        speed, left = (step - self.first) / seconds, (self.steps - step) * seconds / (step - self.first)
        held_out = "" if self.held_out is None else f"  held-out {self.held_out:.4f}"
        line = f"step {step}/{self.steps}  loss {self.loss:.4f}{held_out}  {speed * self.tokens:,.0f} tokens/s  {clock(left)} left"
        self.write(f"\r{self.cut(line)}\x1b[K" if self.terminal else line + "\n", line_open=self.terminal)

    def say(self, text):
        self.write(f"\r{text}\x1b[K\n" if self.terminal else text + "\n")


def means(losses):
    """(step, mean loss) of groups of steps: the curve of single steps is noise."""
    size = max(1, len(losses) // POINTS)
    groups = [losses[i : i + size] for i in range(0, len(losses), size)]
    return [(i * size + len(group), sum(group) / len(group)) for i, group in enumerate(groups)]


def polyline(points, x, y, color):
    text = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)
    return f'<polyline points="{text}" fill="none" stroke="{color}" stroke-width="1.5"/>'


def svg(losses, held_out, steps, measure="nats per token"):
    """losses: of every step so far; held_out: [[step, loss]]; `measure` over steps"""
    curve = means(losses)
    values = [loss for _, loss in [*curve, *held_out]]
    low, high = min(values), max(values)
    low, high = low - 0.05 * (high - low) - 1e-3, high + 0.05 * (high - low) + 1e-3

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / steps

    def y(loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - loss) / (high - low)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for i in range(5):
        loss, step = low + (high - low) * i / 4, steps * i // 4
        lines.append(f'<path d="M{LEFT} {y(loss):.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:.2f}</text>')
        lines.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step}</text>')
    lines.append(polyline(curve, x, y, "#1f77b4"))
    lines.append(polyline(held_out, x, y, "#d62728") if held_out else "")
    lines.append(f'<text x="{LEFT}" y="18">{measure}: <tspan fill="#1f77b4">training</tspan>'
                 + (' <tspan fill="#d62728">held-out</tspan>' if held_out else "") + "</text>")
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">step</text></svg>')
    return "\n".join(line for line in lines if line) + "\n"
