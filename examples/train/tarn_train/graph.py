"""A training step as a CUDA graph. Small models start thousands of kernels in a step, and Python starts them more slowly than a GPU
runs them; a graph starts all of them at once."""

import torch

WARM_UP = 3  # calls before a capture: libraries allocate their workspaces, which a capture forbids


class Captured:
    """work(tokens) -> loss, with the gradients of the loss left in the parameters; recorded once, then replayed.

    tokens: int64 on the GPU; their shape is that of all calls. A replay writes the gradients where the recorded call left them.
    """

    def __init__(self, work, tokens):
        self.tokens, self.graph, side = tokens.clone(), torch.cuda.CUDAGraph(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                work(self.tokens)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(self.graph):
            self.loss = work(self.tokens)

    def __call__(self, tokens):
        self.tokens.copy_(tokens)
        self.graph.replay()
        return self.loss
