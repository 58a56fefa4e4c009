"""Ctrl-C while something is trained: the step that is under way ends, and is saved."""

import signal


class Interrupt:
    """with Interrupt() as interrupt: the first Ctrl-C sets interrupt.asked, a second one is a KeyboardInterrupt. Main thread only."""

    def __enter__(self):
        self.asked = False
        self.before = signal.signal(signal.SIGINT, self.note)
        return self

    def note(self, *_):
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_):
        signal.signal(signal.SIGINT, self.before)
