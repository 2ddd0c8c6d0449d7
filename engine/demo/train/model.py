"""Kimi K3's text graph in PyTorch, for training; docs/model.md describes the graph itself.

The module tree gives the released tensor names; only the routed experts are kept as three stacked
parameters per layer. What is no matrix product is in fast.py.
"""
import torch
from torch import nn

import fast
import geometry as geo


class Norm(nn.Module):
    def __init__(self, width, eps=geo.EPS):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return fast.Norm.apply(x.contiguous(), self.weight, self.eps)


def linear(wide, narrow, scale=1.0):
    layer = nn.Linear(wide, narrow, bias=False)
    nn.init.normal_(layer.weight, std=scale * wide ** -0.5)
    return layer


def joint(x, *layers):
    """What several linear layers make of the same input, by one product: narrow ones are slow."""
    y = nn.functional.linear(x, torch.cat([layer.weight for layer in layers]))
    return [part.contiguous() for part in y.split([len(layer.weight) for layer in layers], -1)]


class Residual(nn.Module):
    """A pair of the block attention residuals: which of a token's sources a reader looks at."""

    def __init__(self):
        super().__init__()
        self.norm = nn.Parameter(torch.ones(geo.HIDDEN))
        self.proj = nn.Parameter(torch.zeros(geo.HIDDEN))

    def forward(self, sources):
        return fast.Mix.apply(self.norm * self.proj, *sources)


class Conv(nn.Module):
    """Depthwise, causal, then SiLU."""

    def __init__(self, width):
        super().__init__()
        taps = 0.1 * torch.randn(width, 1, geo.CONV)
        taps[:, 0, -1] += 1
        self.weight = nn.Parameter(taps)

    def forward(self, x):
        return fast.Conv.apply(x, self.weight[:, 0].t().contiguous())


class Kda(nn.Module):
    def __init__(self):
        super().__init__()
        e, d, p = geo.HIDDEN, geo.KDA_DIM, geo.KDA_HEADS * geo.KDA_DIM
        for name in "qkvg":
            setattr(self, name + "_proj", linear(e, p))
        for name in "qkv":
            setattr(self, name + "_conv1d", Conv(p))
        self.f_a_proj, self.f_b_proj = linear(e, d), linear(d, p, 0.5)
        self.b_proj = linear(e, geo.KDA_HEADS)
        self.o_proj = linear(p, e, 0.5)
        self.A_log = nn.Parameter(torch.zeros(geo.KDA_HEADS))
        # Memories from one token to a hundred.
        self.dt_bias = nn.Parameter(torch.linspace(-6.5, -1.5, d).repeat(geo.KDA_HEADS))
        self.o_norm = Norm(d)

    def forward(self, x):
        split = lambda a: a.view(*a.shape[:2], geo.KDA_HEADS, geo.KDA_DIM)
        q, k, v, g, f, b = joint(x, self.q_proj, self.k_proj, self.v_proj, self.g_proj,
                                 self.f_a_proj, self.b_proj)
        q, k, v = (split(getattr(self, n + "_conv1d")(a)) for n, a in zip("qkv", (q, k, v)))
        z = split(self.f_b_proj(f) + self.dt_bias)
        o = fast.Kda.apply(q, k, v, z, b, self.A_log.exp())
        return self.o_proj(fast.Gate.apply(self.o_norm(o).flatten(2), g))


class Mla(nn.Module):
    def __init__(self):
        super().__init__()
        e, h = geo.HIDDEN, geo.HEADS
        self.q_a_proj = linear(e, geo.Q_LORA)
        self.q_a_layernorm = Norm(geo.Q_LORA, geo.MLA_EPS)
        self.q_b_proj = linear(geo.Q_LORA, h * (geo.NOPE + geo.ROPE))
        self.kv_a_proj_with_mqa = linear(e, geo.KV_LORA + geo.ROPE)
        self.kv_a_layernorm = Norm(geo.KV_LORA, geo.MLA_EPS)
        self.kv_b_proj = linear(geo.KV_LORA, h * (geo.NOPE + geo.V_DIM))
        self.g_proj = linear(e, h * geo.V_DIM)
        self.o_proj = linear(h * geo.V_DIM, e, 0.5)

    def forward(self, x):
        b, t, _ = x.shape
        split = lambda a: a.view(b, t, geo.HEADS, -1)
        q, low, g = joint(x, self.q_a_proj, self.kv_a_proj_with_mqa, self.g_proj)
        q = split(self.q_b_proj(self.q_a_layernorm(q)))
        low, shared = low.split([geo.KV_LORA, geo.ROPE], -1)
        kv = split(self.kv_b_proj(self.kv_a_layernorm(low)))
        k, v = kv.split([geo.NOPE, geo.V_DIM], -1)
        k = torch.cat([k, shared.unsqueeze(2).expand(-1, -1, geo.HEADS, -1)], -1)
        o = fast.Attend.apply(q, k, v.contiguous()).flatten(2)
        return self.o_proj(fast.Gate.apply(o, g))


class Mlp(nn.Module):
    def __init__(self, inner, scale=0.5):
        super().__init__()
        self.gate_proj, self.up_proj = linear(geo.HIDDEN, inner), linear(geo.HIDDEN, inner)
        self.down_proj = linear(inner, geo.HIDDEN, scale)

    def forward(self, x):
        return self.down_proj(fast.Glu.apply(*joint(x, self.gate_proj, self.up_proj)))


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        n, wide, inner = geo.EXPERTS, geo.LATENT, geo.INNER
        self.gate = linear(geo.HIDDEN, n)
        self.register_buffer("bias", torch.zeros(n))
        self.register_buffer("load", torch.zeros(n))
        self.routed_expert_down_proj = linear(geo.HIDDEN, wide)
        self.routed_expert_up_proj = linear(wide, geo.HIDDEN, 0.5)
        self.routed_expert_norm = Norm(wide)
        self.shared_experts = Mlp(geo.INNER * geo.SHARED)
        self.w1 = nn.Parameter(torch.randn(n, inner, wide) * wide ** -0.5)
        self.w3 = nn.Parameter(torch.randn(n, inner, wide) * wide ** -0.5)
        self.w2 = nn.Parameter(torch.randn(n, wide, inner) * inner ** -0.5)

    def choose(self, score):
        score = torch.sigmoid(score)
        chosen = (score.detach() + self.bias).topk(geo.TOP_K, -1).indices
        weight = score.gather(-1, chosen)
        return chosen, weight / (weight.sum(-1, keepdim=True) + 1e-20)

    def experts(self, z, chosen):
        """z [N, L] to [N, TOP_K, L]; in between the rows are sorted by expert."""
        flat = chosen.flatten()
        count = torch.bincount(flat, minlength=geo.EXPERTS)
        self.load += count
        order = flat.argsort(stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        x = z.index_select(0, torch.div(order, geo.TOP_K, rounding_mode="floor"))
        w1, w2, w3 = (fast.Mxfp4.apply(w) for w in (self.w1, self.w2, self.w3))
        product = lambda x, w: fast.Grouped.apply(x, w, count.tolist())
        y = product(fast.Glu.apply(product(x, w1), product(x, w3)), w2)
        return y.index_select(0, place).view(len(z), geo.TOP_K, -1)

    def forward(self, x):
        flat = x.flatten(0, -2)
        shared = self.shared_experts
        score, z, gate, up = joint(flat, self.gate, self.routed_expert_down_proj, shared.gate_proj,
                                   shared.up_proj)
        chosen, weight = self.choose(score)
        r = (self.experts(z, chosen) * weight.unsqueeze(-1)).sum(1)
        y = self.routed_expert_up_proj(self.routed_expert_norm(r))
        return (y + shared.down_proj(fast.Glu.apply(gate, up))).view_as(x)

    def balance(self, rate):
        """Steers selection towards even use: the bias of what is used too much sinks."""
        with torch.no_grad():
            self.bias += rate * torch.sign(self.load.mean() - self.load)
            self.load.zero_()


class Layer(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.boundary = index % geo.RES_BLOCK == 0
        self.self_attention_res, self.mlp_res = Residual(), Residual()
        self.input_layernorm, self.post_attention_layernorm = Norm(geo.HIDDEN), Norm(geo.HIDDEN)
        self.self_attn = Mla() if index + 1 in geo.MLA_LAYERS else Kda()
        if index < geo.DENSE_LAYERS:
            self.mlp = Mlp(geo.DENSE_INNER)
        else:
            self.block_sparse_moe = Moe()

    def forward(self, p, snapshots):
        h = self.self_attention_res(snapshots + [p]) if snapshots else p
        if self.boundary:
            snapshots = snapshots + [p]
        a = self.self_attn(self.input_layernorm(h))
        p = a if self.boundary else p + a
        h = self.mlp_res(snapshots + [p])
        mlp = self.mlp if hasattr(self, "mlp") else self.block_sparse_moe
        return p + mlp(self.post_attention_layernorm(h)), snapshots


class K3(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(geo.VOCAB, geo.HIDDEN)
        nn.init.normal_(self.embed_tokens.weight, std=0.5)
        self.layers = nn.ModuleList(Layer(i) for i in range(geo.LAYERS))
        self.output_attn_res, self.norm = Residual(), Norm(geo.HIDDEN)
        self.lm_head = linear(geo.HIDDEN, geo.VOCAB)

    def forward(self, ids, where=None):
        """ids [B, T]; logits of the positions `where` of the flattened batch, or of all."""
        p, snapshots = self.embed_tokens(ids), []
        for layer in self.layers:
            p, snapshots = layer(p, snapshots)
        sources = [v.flatten(0, 1) for v in snapshots + [p]]
        if where is not None:
            sources = [v.index_select(0, where) for v in sources]
        return self.lm_head(self.norm(self.output_attn_res(sources)))

    def moes(self):
        return [x.block_sparse_moe for x in self.layers if hasattr(x, "block_sparse_moe")]
