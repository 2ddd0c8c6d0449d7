#!/usr/bin/python3
"""Compares model.py with the slow reference of the tests, and its gradients with differences.

    check_forward.py [FOLDER]    of a random model, or of the weights last.pt in FOLDER
"""
import os
import sys
import tempfile

import numpy as np
import torch

import export
import fast
import geometry as geo
from model import K3
from tokenizer import HERE

sys.path.insert(0, os.path.join(HERE, "../../../tests/reference"))
import k3_reference  # noqa: E402


def disturb(model):
    """A fresh model has zeros and ones where the graph should show."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p += 0.3 * torch.randn_like(p)
        for moe in model.moes():
            moe.bias += 0.1 * torch.randn_like(moe.bias)


def rounded(model):
    """The trunk as it is stored."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not export.is_f32("." + name) and not name.endswith((".w1", ".w2", ".w3")):
                p.copy_(p.bfloat16().float())


def check_logits(model):
    rounded(model)
    ids = torch.randint(0, geo.VOCAB, (1, 50))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        export.write_checkpoint(model.state_dict(), folder)
        want, _ = k3_reference.Model(folder).forward(ids[0].numpy())
        got = model(ids).numpy()
    worst, top = np.abs(got - want).max(), np.abs(want).max()
    print("logits: largest difference %.2e of %.2f" % (worst, top))
    return worst < 1e-4 * top


def plain_kda(q, k, v, z, beta, rate):
    """The recurrence as it is written, by autograd."""
    unit = lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
    q, k, beta = unit(q) * q.shape[-1] ** -0.5, unit(k), torch.sigmoid(beta)
    a = torch.exp(geo.GATE_LOWER * torch.sigmoid(rate[:, None] * z))
    state, out = torch.zeros(*q.shape[:1], *q.shape[2:], q.shape[-1], dtype=q.dtype), []
    for t in range(q.shape[1]):
        state = state * a[:, t].unsqueeze(-1)
        u = torch.einsum("bhij,bhi->bhj", state, k[:, t])
        e = beta[:, t].unsqueeze(-1) * (v[:, t] - u)
        state = state + k[:, t].unsqueeze(-1) * e.unsqueeze(-2)
        out.append(torch.einsum("bhij,bhi->bhj", state, q[:, t]))
    return torch.stack(out, 1)


def plain_attention(q, k, v):
    score = torch.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    hidden = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1)
    return torch.einsum("bhts,bshd->bthd", score.masked_fill(hidden, -1e30).softmax(-1), v)


def plain_conv(x, w):
    y = sum(torch.nn.functional.pad(x, (0, 0, back, 0))[:, :x.shape[1]] * w[3 - back]
            for back in range(4))
    return torch.nn.functional.silu(y)


def plain_glu(gate, up):
    b1, b2 = geo.SITU_BETA, geo.SITU_LINEAR_BETA
    return b1 * torch.tanh(gate / b1) * torch.sigmoid(gate) * b2 * torch.tanh(up / b2)


def plain_mix(key, *sources):
    score = torch.stack([(v * torch.rsqrt(v.square().mean(-1, keepdim=True) + geo.EPS)) @ key
                         for v in sources], -1)
    return sum(v * s.unsqueeze(-1) for v, s in zip(sources, torch.softmax(score, -1).unbind(-1)))


def plain_norm(x, w, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w


def check_gradients():
    r = lambda *shape: torch.randn(*shape)
    h, d = geo.KDA_HEADS, geo.KDA_DIM
    cases = {
        "kda": (fast.Kda.apply, plain_kda, [r(2, 9, h, d) for _ in range(4)] +
                [r(2, 9, h), r(h).exp()]),
        "attention": (fast.Attend.apply, plain_attention,
                      [r(2, 37, geo.HEADS, geo.NOPE + geo.ROPE) for _ in range(2)] +
                      [r(2, 37, geo.HEADS, geo.V_DIM)]),
        "conv": (fast.Conv.apply, plain_conv, [r(2, 9, 24), r(4, 24)]),
        "norm": (lambda x, w: fast.Norm.apply(x, w, 1e-5), lambda x, w: plain_norm(x, w, 1e-5),
                 [r(5, 24), r(24)]),
        "glu": (fast.Glu.apply, plain_glu, [r(5, 24) * 3, r(5, 24) * 9]),
        "gate": (fast.Gate.apply, lambda x, g: x * torch.sigmoid(g), [r(5, 24), r(5, 24)]),
        "mix": (fast.Mix.apply, plain_mix, [r(24)] + [r(5, 24) for _ in range(3)])}
    good = True
    for name, (mine, plain, inputs) in cases.items():
        a = [x.clone().requires_grad_() for x in inputs]
        b = [x.double().requires_grad_() for x in inputs]
        got, want = mine(*a), plain(*b)
        weight = torch.randn_like(got)
        (got * weight).sum().backward()
        (want * weight).sum().backward()
        worst = max(float((x - y).abs().max() / (y.abs().max() + 1e-9)) for x, y in
                    [(got, want)] + [(x.grad, y.grad) for x, y in zip(a, b)])
        print("%s: values and gradients differ by %.1e at most" % (name, worst))
        good = good and worst < 2e-4
    return good


def main():
    torch.manual_seed(7)
    model = K3()
    if len(sys.argv) > 1:
        model.load_state_dict(torch.load(os.path.join(sys.argv[1], "last.pt"))["model"])
    else:
        disturb(model)
    good = [check_gradients(), check_logits(model)]
    sys.exit(0 if all(good) else "check_forward.py: the model differs from the reference")


if __name__ == "__main__":
    main()
