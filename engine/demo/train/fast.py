"""fast.c as differentiable functions; it is compiled at the first import, into a cache folder."""
import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch

import geometry as geo

FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fopenmp", "-shared",
         "-fPIC", "-DD=%d" % geo.KDA_DIM, "-DQK=%d" % (geo.NOPE + geo.ROPE),
         "-DVD=%d" % geo.V_DIM]


def build():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fast.c")
    with open(source, "rb") as f:
        name = hashlib.sha256(f.read() + repr(FLAGS).encode()).hexdigest()[:16]
    out = os.path.join(tempfile.gettempdir(), "k3-demo-fast-%d-%s.so" % (os.getuid(), name))
    if not os.path.exists(out):
        subprocess.run([os.environ.get("CC", "cc"), *FLAGS, source, "-o", out + ".new", "-lm"],
                       check=True)
        os.rename(out + ".new", out)
    lib = ctypes.CDLL(out)
    lib.sum_squares.restype = ctypes.c_double
    return lib


LIB = build()


def call(name, *args):
    kept, plain = [], []
    for a in args:
        if isinstance(a, torch.Tensor):
            assert a.is_contiguous() and a.dtype == torch.float32
            plain.append(ctypes.c_void_p(a.data_ptr()))
        elif isinstance(a, list):
            kept.append((ctypes.c_void_p * len(a))(*[t.data_ptr() for t in a]))
            plain.append(kept[-1])
        else:
            plain.append(ctypes.c_float(a) if isinstance(a, float) else ctypes.c_long(a))
    return getattr(LIB, name)(*plain)


class Kda(torch.autograd.Function):
    """q, k, v, z [B, T, H, D], beta [B, T, H], rate [H]; the recurrence with everything around it
    that works head by head."""

    @staticmethod
    def forward(ctx, *inputs):
        q = inputs[0]
        ctx.save_for_backward(*inputs)
        o = torch.empty_like(q)
        call("kda_forward", *inputs, geo.GATE_LOWER, o, *q.shape[:3])
        return o

    @staticmethod
    def backward(ctx, grad):
        inputs = ctx.saved_tensors
        out = [torch.empty_like(a) for a in inputs[:5]] + [torch.zeros_like(inputs[5])]
        call("kda_backward", *inputs, geo.GATE_LOWER, grad.contiguous(), *out,
             *inputs[0].shape[:3])
        return tuple(out)


class Attend(torch.autograd.Function):
    """q, k [B, T, H, QK], v [B, T, H, VD]: causal softmax attention."""

    @staticmethod
    def forward(ctx, q, k, v):
        b, t, h, width = q.shape
        o, log_sum = torch.empty_like(v), q.new_empty(b, h, t)
        call("attend_forward", q, k, v, o, log_sum, width ** -0.5, b, t, h)
        ctx.save_for_backward(q, k, v, o, log_sum)
        return o

    @staticmethod
    def backward(ctx, grad):
        q, k, v, o, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        call("attend_backward", q, k, v, o, log_sum, grad.contiguous(), dq, dk, dv,
             q.shape[-1] ** -0.5, *q.shape[:3])
        return dq, dk, dv


class Conv(torch.autograd.Function):
    """x [B, T, P], w [TAPS, P]."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = torch.empty_like(x)
        call("conv_forward", x, w, y, *x.shape)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        dx, dw = torch.zeros_like(x), x.new_zeros(len(x), *w.shape)
        call("conv_backward", x, w, grad.contiguous(), dx, dw, *x.shape)
        return dx, dw.sum(0)


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        ctx.save_for_backward(x, w)
        ctx.eps = eps
        y = torch.empty_like(x)
        call("norm_forward", x, w, y, eps, x.numel() // len(w), len(w))
        return y

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.zeros_like(w)
        call("norm_backward", x, w, grad.contiguous(), dx, dw, ctx.eps, x.numel() // len(w), len(w))
        return dx, dw, None


class Glu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        y = torch.empty_like(gate)
        call("glu_forward", gate, up, y, geo.SITU_BETA, geo.SITU_LINEAR_BETA, gate.numel())
        return y

    @staticmethod
    def backward(ctx, grad):
        gate, up = ctx.saved_tensors
        dg, du = torch.empty_like(gate), torch.empty_like(up)
        call("glu_backward", gate, up, grad.contiguous(), dg, du, geo.SITU_BETA,
             geo.SITU_LINEAR_BETA, gate.numel())
        return dg, du


class Gate(torch.autograd.Function):
    """x * sigma(gate)."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        y = torch.empty_like(x)
        call("gate_forward", x, gate, y, x.numel())
        return y

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        dx, dg = torch.empty_like(x), torch.empty_like(gate)
        call("gate_backward", x, gate, grad.contiguous(), dx, dg, x.numel())
        return dx, dg


class Mix(torch.autograd.Function):
    """key [E], sources [..., E] each."""

    @staticmethod
    def forward(ctx, key, *sources):
        ctx.save_for_backward(key, *sources)
        y = torch.empty_like(sources[0])
        call("mix_forward", list(sources), len(sources), key, y, geo.EPS, y.numel() // len(key),
             len(key))
        return y

    @staticmethod
    def backward(ctx, grad):
        key, *sources = ctx.saved_tensors
        d_key, out = torch.zeros_like(key), [torch.empty_like(v) for v in sources]
        call("mix_backward", sources, len(sources), key, grad.contiguous(), out, d_key, geo.EPS,
             grad.numel() // len(key), len(key))
        return (d_key, *out)


class Mxfp4(torch.autograd.Function):
    """What is stored goes forward, the gradient goes straight through."""

    @staticmethod
    def forward(ctx, w):
        y = torch.empty_like(w)
        call("mxfp4", w, y, w.numel() // 32)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad


class Grouped(torch.autograd.Function):
    """x [R, in], w [groups, out, in]: counts[e] rows, one group behind the other, times w[e]^T."""

    @staticmethod
    def forward(ctx, x, w, counts):
        ctx.save_for_backward(x, w)
        ctx.counts = counts
        y = x.new_empty(len(x), w.shape[1])
        for a, b, m in zip(x.split(counts), y.split(counts), w):
            torch.mm(a, m.t(), out=b)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.empty_like(w)
        parts = zip(x.split(ctx.counts), grad.contiguous().split(ctx.counts), w,
                    dx.split(ctx.counts), dw)
        for a, g, m, da, dm in parts:
            torch.mm(g, m, out=da)
            torch.mm(g.t(), a, out=dm)
        return dx, dw, None


class AdamW:
    """One pass over each tensor; decay for matrices only, gradients clipped to a norm of 1."""

    def __init__(self, named, decay, betas=(0.9, 0.95)):
        self.params = [p for _, p in named]
        self.decay = [decay if p.dim() > 1 and "conv1d" not in n else 0.0 for n, p in named]
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self.params]
        self.betas, self.steps = betas, 0

    def state_dict(self):
        return {"moments": self.moments, "steps": self.steps}

    def load_state_dict(self, state):
        self.moments, self.steps = state["moments"], state["steps"]

    def step(self, rate):
        self.steps += 1
        grads = [None if p.grad is None else p.grad.contiguous() for p in self.params]
        norm = sum(call("sum_squares", g, g.numel()) for g in grads if g is not None) ** 0.5
        b1, b2 = self.betas
        for p, g, (m, v), decay in zip(self.params, grads, self.moments, self.decay):
            if g is None:       # the first layer's residual pair has nothing to choose from
                continue
            call("adamw", p.data, g, m, v, min(1.0, 1.0 / (norm + 1e-6)), rate,
                 1.0 - rate * decay, b1, b2, 1.0 / (1 - b1 ** self.steps),
                 1.0 / (1 - b2 ** self.steps), p.numel())
            p.grad = None
