#!/usr/bin/env python3
"""The slow reference: Kimi K3's text graph in float64 with numpy, written from the model's
description and sharing nothing with the C engine.

It has no cache and no state: every call computes every position anew, with the MLA keys and values
expanded per head. Usage:

    k3_reference.py MODEL --ids 1,2,3 [--greedy N] [--positions 0,5,7] [--out FILE]
    k3_reference.py MODEL --check EXPECTED      compare with a stored result, all fields

The fields of the result are described in README.md.
"""
import argparse
import json
import os
import struct
import sys

import numpy as np

FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
MLA_LATENT_EPS = 1e-6       # the released code builds these two norms without an eps argument


# ---- files ---------------------------------------------------------------------------------------

class Checkpoint:
    """Tensors of a folder of safetensors shards, by name without the `language_model.` prefix."""

    def __init__(self, folder):
        with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as f:
            self.where = json.load(f)["weight_map"]
        self.prefix = "language_model." if any(n.startswith("language_model.")
                                               for n in self.where) else ""
        self.shards = {}
        for name in set(self.where.values()):
            with open(os.path.join(folder, name), "rb") as f:
                blob = f.read()
            size = struct.unpack("<Q", blob[:8])[0]
            header = json.loads(blob[8:8 + size])
            header.pop("__metadata__", None)
            self.shards[name] = (header, blob[8 + size:])

    def has(self, name):
        return self.prefix + name in self.where

    def raw(self, name):
        full = self.prefix + name
        header, data = self.shards[self.where[full]]
        entry = header[full]
        begin, end = entry["data_offsets"]
        return entry["dtype"], entry["shape"], data[begin:end]

    def get(self, name):
        """A BF16 or F32 tensor as float64."""
        dtype, shape, data = self.raw(name)
        if dtype == "F32":
            value = np.frombuffer(data, "<f4")
        elif dtype == "BF16":
            value = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            raise SystemExit("%s: dtype %s is not BF16 or F32" % (name, dtype))
        return value.astype(np.float64).reshape(shape)

    def expert(self, name):
        """A matrix of a routed expert, MXFP4 or plain, as float64."""
        if self.has(name + ".weight"):
            return self.get(name + ".weight")
        _, (rows, half), packed = self.raw(name + ".weight_packed")
        _, (_, groups), scale = self.raw(name + ".weight_scale")
        byte = np.frombuffer(packed, np.uint8).reshape(rows, half)
        value = np.empty((rows, 2 * half))
        value[:, 0::2] = FP4[byte & 15]
        value[:, 1::2] = FP4[byte >> 4]
        power = np.frombuffer(scale, np.uint8).reshape(rows, groups).astype(np.float64)
        if (power == 255).any():
            raise SystemExit("%s: a scale is NaN" % name)
        return value * np.repeat(np.exp2(power - 127), 2 * half // groups, axis=1)


class Config:
    """config.json of either shape; an absent key is an error."""

    LINEAR = {"num_heads": "kda_num_heads", "head_dim": "kda_head_dim"}
    SITU = {"activation_situ_beta": "situ_beta",
            "activation_situ_linear_beta": "situ_linear_beta"}

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            top = json.load(f)
        self.text = top.get("text_config", top)

    def __getitem__(self, key):
        return self.text[key if key in self.text else self.SITU.get(key, key)]

    def linear(self, key):
        block = self.text.get("linear_attn_config")
        return block[key] if block is not None else self.text[self.LINEAR.get(key, key)]


# ---- the graph -----------------------------------------------------------------------------------

def sigma(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def silu(x):
    return x * sigma(x)


def rms(x, w, eps):
    return w * x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Model:
    def __init__(self, folder, mla_eps=MLA_LATENT_EPS):
        self.cfg, self.file = Config(folder), Checkpoint(folder)
        self.eps, self.mla_eps = self.cfg["rms_norm_eps"], mla_eps
        self.full = set(self.cfg.linear("full_attn_layers"))
        self.kept = {}

    def w(self, name):
        if name not in self.kept:
            self.kept[name] = self.file.get(name)
        return self.kept[name]

    def expert(self, name):
        if name not in self.kept:
            self.kept[name] = self.file.expert(name)
        return self.kept[name]

    # -- block attention residuals --

    def aggregate(self, sources, norm, proj):
        """sources: list of [T, E]; weighs each token's sources by a softmax over them."""
        v = np.stack(sources)
        key = (self.w(norm) * self.w(proj)[0])
        score = (v / np.sqrt(np.mean(v * v, axis=-1, keepdims=True) + self.eps)) @ key
        return np.einsum("st,ste->te", softmax(score.T).T, v)

    # -- attention --

    def conv(self, x, w):
        """Causal depthwise convolution, then SiLU. x [T, P], w [P, 1, K]."""
        taps = w.shape[2]
        padded = np.vstack([np.zeros((taps - 1, x.shape[1])), x])
        out = np.zeros_like(x)
        for k in range(taps):
            out += padded[k:k + len(x)] * w[:, 0, k]
        return silu(out)

    def kda(self, x, at):
        heads, d = self.cfg.linear("num_heads"), self.cfg.linear("head_dim")
        w = lambda name: self.w(at + name)
        length = len(x)
        q, k, v = (self.conv(x @ w(n + "_proj.weight").T, w(n + "_conv1d.weight"))
                   .reshape(length, heads, d) for n in "qkv")
        unit = lambda a: a / np.sqrt((a * a).sum(-1, keepdims=True) + 1e-6)
        q, k = unit(q) * d ** -0.5, unit(k)
        beta = sigma(x @ w("b_proj.weight").T)
        z = (x @ w("f_a_proj.weight").T) @ w("f_b_proj.weight").T + w("dt_bias").reshape(-1)
        rate = np.exp(w("A_log").reshape(-1)[:heads])[:, None]
        decay = np.exp(self.cfg.linear("gate_lower_bound") *
                       sigma(rate * z.reshape(length, heads, d)))
        out = np.empty((length, heads, d))
        state = np.zeros((heads, d, d))
        for t in range(length):
            state = state * decay[t][:, :, None]
            read = np.einsum("hij,hi->hj", state, k[t])
            state = state + np.einsum("hi,hj->hij", k[t], beta[t][:, None] * (v[t] - read))
            out[t] = np.einsum("hij,hi->hj", state, q[t])
        y = rms(out, w("o_norm.weight"), self.eps).reshape(length, heads * d)
        return (y * sigma(x @ w("g_proj.weight").T)) @ w("o_proj.weight").T

    def mla(self, x, at):
        c = self.cfg
        heads, nope, rope, vd = (c["num_attention_heads"], c["qk_nope_head_dim"],
                                 c["qk_rope_head_dim"], c["v_head_dim"])
        lora = c["kv_lora_rank"]
        w = lambda name: self.w(at + name)
        length = len(x)
        q = rms(x @ w("q_a_proj.weight").T, w("q_a_layernorm.weight"), self.mla_eps)
        q = (q @ w("q_b_proj.weight").T).reshape(length, heads, nope + rope)
        low = x @ w("kv_a_proj_with_mqa.weight").T
        latent = rms(low[:, :lora], w("kv_a_layernorm.weight"), self.mla_eps)
        kv = (latent @ w("kv_b_proj.weight").T).reshape(length, heads, nope + vd)
        shared = np.repeat(low[:, None, lora:], heads, axis=1)
        k = np.concatenate([kv[:, :, :nope], shared], axis=2)
        score = np.einsum("thd,shd->hts", q, k) * (nope + rope) ** -0.5
        score[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
        out = np.einsum("hts,shd->thd", softmax(score), kv[:, :, nope:]).reshape(length, -1)
        if c["mla_use_output_gate"]:
            out = out * sigma(x @ w("g_proj.weight").T)
        return out @ w("o_proj.weight").T

    # -- MLPs --

    def glu(self, gate, up):
        b1, b2 = self.cfg["activation_situ_beta"], self.cfg["activation_situ_linear_beta"]
        return b1 * np.tanh(gate / b1) * sigma(gate) * b2 * np.tanh(up / b2)

    def mlp(self, x, at):
        gate, up = (x @ self.w(at + n + "_proj.weight").T for n in ("gate", "up"))
        return self.glu(gate, up) @ self.w(at + "down_proj.weight").T

    def route(self, x, at):
        """Chosen experts [T, k], best first, their weights, and the margin of the choice [T]."""
        c = self.cfg
        k = c["num_experts_per_token"]
        score = sigma(x @ self.w(at + "gate.weight").T)
        biased = score + self.w(at + "gate.e_score_correction_bias")
        order = np.argsort(-biased, axis=1, kind="stable")      # a tie: the lower index
        chosen = order[:, :k]
        weight = np.take_along_axis(score, chosen, 1)
        if c["moe_renormalize"] and k > 1:
            weight = weight / (weight.sum(1, keepdims=True) + 1e-20)
        ranked = np.take_along_axis(biased, order, 1)
        margin = ranked[:, k - 1] - ranked[:, k] if ranked.shape[1] > k else None
        return chosen, weight * c["routed_scaling_factor"], margin

    def moe(self, x, at, note):
        chosen, weight, margin = self.route(x, at)
        z = x @ self.w(at + "routed_expert_down_proj.weight").T
        total = np.zeros_like(z)
        for e in np.unique(chosen):
            w1, w2, w3 = (self.expert("%sexperts.%d.%s" % (at, e, m)) for m in ("w1", "w2", "w3"))
            rows, slot = np.nonzero(chosen == e)
            part = self.glu(z[rows] @ w1.T, z[rows] @ w3.T) @ w2.T
            total[rows] += weight[rows, slot][:, None] * part
        if self.cfg["latent_moe_use_norm"]:
            total = rms(total, self.w(at + "routed_expert_norm.weight"), self.eps)
        note["experts"].append(chosen)
        note["weights"].append(weight)
        note["route_margins"].append(margin)
        return (total @ self.w(at + "routed_expert_up_proj.weight").T +
                self.mlp(x, at + "shared_experts."))

    # -- all layers --

    def layer(self, index, prefix, snapshots, note):
        at = "model.layers.%d." % index
        h = prefix
        if snapshots:
            h = self.aggregate(snapshots + [prefix], at + "self_attention_res_norm.weight",
                               at + "self_attention_res_proj.weight")
        if index % self.cfg["attn_res_block_size"] == 0:
            snapshots.append(prefix)
            prefix = None
        attention = self.mla if index + 1 in self.full else self.kda
        a = attention(rms(h, self.w(at + "input_layernorm.weight"), self.eps), at + "self_attn.")
        prefix = a if prefix is None else prefix + a
        h = self.aggregate(snapshots + [prefix], at + "mlp_res_norm.weight",
                           at + "mlp_res_proj.weight")
        x = rms(h, self.w(at + "post_attention_layernorm.weight"), self.eps)
        if index < self.cfg["first_k_dense_replace"]:
            for key in ("experts", "weights", "route_margins"):
                note[key].append(None)
            return prefix + self.mlp(x, at + "mlp.")
        return prefix + self.moe(x, at + "block_sparse_moe.", note)

    def forward(self, ids):
        """Logits [T, vocab] of all positions, and notes of what happened in each layer."""
        note = {"experts": [], "weights": [], "route_margins": [], "running_sum": []}
        prefix, snapshots = self.w("model.embed_tokens.weight")[ids], []
        for index in range(self.cfg["num_hidden_layers"]):
            prefix = self.layer(index, prefix, snapshots, note)
            note["running_sum"].append(prefix)
        h = self.aggregate(snapshots + [prefix], "model.output_attn_res_norm.weight",
                           "model.output_attn_res_proj.weight")
        h = rms(h, self.w("model.norm.weight"), self.eps)
        return h @ self.w("lm_head.weight").T, note

    def greedy(self, ids, count):
        out = list(ids)
        for _ in range(count):
            out.append(int(np.argmax(self.forward(out)[0][-1])))
        return out[len(ids):]


# ---- results -------------------------------------------------------------------------------------

def brief(array):
    """float32 values with the digits they need, as nested lists."""
    flat = [float(str(np.float32(v))) for v in np.asarray(array).reshape(-1)]
    return np.array(flat).reshape(np.shape(array)).tolist()


def result(model, ids, count, positions):
    greedy = model.greedy(ids, count)
    full = list(ids) + greedy
    logits, note = model.forward(full)
    positions = positions or sorted({0, len(full) // 3, 2 * len(full) // 3, len(full) - 1})
    top = np.sort(logits, axis=1)[:, -2:]
    margin = top[:, 1] - top[:, 0]
    relative = margin / np.abs(logits).max(axis=1)
    routed = [m.min() for m in note["route_margins"] if m is not None]
    pick = lambda rows: [None if r is None else brief(r[positions]) for r in rows]
    return {
        "prompt_ids": list(ids), "greedy_ids": greedy, "full_ids": full,
        "argmax": logits.argmax(axis=1).tolist(),
        "margin_abs": brief(margin), "margin_rel": brief(relative),
        "min_margin_rel": float(relative.min()),
        "min_route_margin": float(min(routed)) if routed else None,
        "max_abs_logit": float(np.abs(logits).max()),
        "logits": {"positions": positions, "rows": brief(logits[positions])},
        "experts": [None if e is None else e.tolist() for e in note["experts"]],
        "expert_weights": {"positions": positions, "layers": pick(note["weights"])},
        "running_sum": {
            "positions": positions,
            "rms": [brief(np.sqrt(np.mean(r[positions] ** 2, axis=1)))
                    for r in note["running_sum"]],
            "first4": [brief(r[positions][:, :4]) for r in note["running_sum"]]},
    }


def dump(value, out):
    """One line per field, so that a change of one is a short difference."""
    lines = ['"%s": %s' % (k, json.dumps(v, separators=(",", ":"))) for k, v in value.items()]
    out.write("{\n" + ",\n".join(lines) + "\n}\n")


def leaves(value):
    if isinstance(value, list):
        for v in value:
            yield from leaves(v)
    else:
        yield value


def compare(folder, path):
    """Prints each field's largest difference; returns how many fields differ by too much."""
    with open(path, encoding="utf-8") as f:
        want = json.load(f)
    model = Model(folder)
    got = result(model, want["prompt_ids"], len(want["greedy_ids"]), want["logits"]["positions"])
    if "mla_latent_eps_effect" in want:
        other = Model(folder, mla_eps=model.eps).forward(got["full_ids"])[0]
        got["mla_latent_eps_effect"] = float(
            np.abs(other - model.forward(got["full_ids"])[0]).max())
    bad = 0
    for key, value in got.items():
        if isinstance(value, dict):
            pairs = [(key + "." + k, v, want[key][k]) for k, v in value.items()]
        else:
            pairs = [(key, value, want[key])]
        for name, a, b in pairs:
            bad += not report(name, a, b)
    return bad


def report(name, a, b):
    a, b = list(leaves(a)), list(leaves(b))
    if len(a) != len(b) or any((x is None) != (y is None) for x, y in zip(a, b)):
        print("%-24s differs in shape" % name)
        return False
    diff = max([abs(x - y) for x, y in zip(a, b) if x is not None], default=0)
    whole = all(x is None or isinstance(x, int) for x in a)
    good = diff == 0 if whole else diff <= 2e-6 * max(1, max(abs(y) for y in b if y is not None))
    print("%-24s %7d values, largest difference %.3g%s" % (name, len(a), diff,
                                                        "" if good else "   TOO LARGE"))
    return good


def numbers(text):
    return [int(v) for v in text.split(",")]


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--ids", type=numbers, help="prompt, comma-separated")
    ap.add_argument("--greedy", type=int, default=0, help="ids to generate")
    ap.add_argument("--positions", type=numbers, help="positions whose logits are written")
    ap.add_argument("--out", help="file for the result (default: stdout)")
    ap.add_argument("--check", help="stored result to compare with")
    opt = ap.parse_args()
    if opt.check:
        sys.exit(1 if compare(opt.model, opt.check) else 0)
    if not opt.ids:
        ap.error("--ids or --check is needed")
    value = result(Model(opt.model), opt.ids, opt.greedy, opt.positions)
    if opt.out:
        with open(opt.out, "w", encoding="utf-8") as f:
            dump(value, f)
    else:
        dump(value, sys.stdout)


if __name__ == "__main__":
    main()
