"""Import before fla: its Triton kernels run on the CPU, interpreted. A stand-in for the driver takes the first configuration of each
kernel that is tuned, functions that kernels call by another name than Triton's are Triton's own, and the softmax attention of hybrids
is PyTorch's."""

import contextlib
import importlib.machinery
import os
import sys
import types

os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import driver  # noqa: E402


class Driver:
    utils = types.SimpleNamespace(get_device_properties=lambda index: {"multiprocessor_count": 2, "max_shared_mem": 1 << 20})

    def get_benchmarker(self):
        return lambda *arguments, **named: [0.0, 0.0, 0.0]

    def get_current_target(self):
        return types.SimpleNamespace(backend="cpu", arch="", warp_size=32)

    def get_current_device(self):
        return 0

    def get_device_interface(self):
        return torch.cpu

    def get_active_torch_device(self):
        return torch.device("cpu")


@triton.jit
def exp(x):
    return tl.exp(x)


@triton.jit
def exp2(x):
    return tl.exp2(x)


@triton.jit
def log(x):
    return tl.log(x)


@triton.jit
def log2(x):
    return tl.log2(x)


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def logaddexp(a, b):
    return tl.maximum(a, b) + tl.log(1 + tl.exp(-tl.abs(a - b)))


@triton.jit
def safe_dot(a, b, allow_tf32: tl.constexpr = None):
    return tl.dot(a, b)


@triton.jit
def barrier():
    tl.debug_barrier()


@triton.jit
def unflatten_program_id(x: tl.constexpr, y: tl.constexpr = None):
    """Of a flat grid, whose first index runs fastest."""
    index = tl.program_id(0)
    if y is None:
        return index % x, index // x
    else:
        return index % x, index // x % y, index // (x * y)


@triton.jit
def gather(src, index, axis, _builder=None):
    return None


@triton.jit
def make_tensor_descriptor(base, shape, strides, block_shape, _builder=None):
    return None


driver.set_active(Driver())
torch.cpu.device = lambda index: contextlib.nullcontext()
sys.modules["fla.ops.utils.op"] = sys.modules[__name__]


def flash_attn_func(q, k, v, causal, window_size):
    """Of [batch, tokens, heads, head_dim]: the token and window_size[0] before it, -1: all."""
    position = torch.arange(q.shape[1])
    distance = position[:, None] - position[None, :]
    seen = distance >= 0 if window_size[0] < 0 else (distance >= 0) & (distance <= window_size[0])
    heads = [x.transpose(1, 2) for x in (q, k, v)]
    assert causal
    return torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=seen, enable_gqa=True).transpose(1, 2)


flash_attn = types.ModuleType("flash_attn")
flash_attn.__spec__ = importlib.machinery.ModuleSpec("flash_attn", None)
flash_attn.flash_attn_func = flash_attn.flash_attn_varlen_func = flash_attn_func
sys.modules["flash_attn"] = flash_attn
