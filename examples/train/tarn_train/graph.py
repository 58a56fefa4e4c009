"""The gradients of a training step as a CUDA graph. A small model starts thousands of kernels in a step, and Python starts them more
slowly than a GPU runs them; a graph starts all of them at once."""

import torch

WARM_UP = 3  # calls before the recording: libraries allocate their workspaces, which a recording forbids


class RecordedGradients:
    """work(tokens) -> tensors, with gradients left in the parameters; recorded once, then replayed.

    tokens: int64 on the GPU; their shape is that of all calls. A replay writes the gradients where the recorded call left them, and
    the results into the same tensors. Errors: RuntimeError if the work has an operation that a recording forbids.
    """

    def __init__(self, work, tokens):
        with torch.cuda.device(tokens.device):
            self.tokens, self.graph, side = tokens.clone(), torch.cuda.CUDAGraph(), torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    work(self.tokens)
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(self.graph):
                self.results = work(self.tokens)

    def __call__(self, tokens):
        with torch.cuda.device(tokens.device):
            self.tokens.copy_(tokens)
            self.graph.replay()
        return self.results
