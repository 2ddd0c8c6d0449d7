"""Writes the model as a checkpoint in the released layout, and packs that folder into one file."""
import io
import json
import os
import struct
import tarfile

import numpy as np

import geometry as geo
import mxfp4

PREFIX = "language_model."
F32, BF16, U8 = "F32", "BF16", "U8"


def bf16(w):
    """Rounded to nearest, ties to even; as uint16."""
    bits = np.ascontiguousarray(w, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def is_f32(name):
    return any(part in name for part in ("_conv1d.", ".A_log", ".dt_bias", ".o_norm.",
                                         "e_score_correction_bias"))


def expert_tensors(at, stacked):
    for which, matrices in stacked.items():
        for i, w in enumerate(matrices):
            name = "%sexperts.%d.%s.weight_" % (at, i, which)
            codes, scales = mxfp4.pack(w)
            yield name + "packed", U8, codes
            yield name + "scale", U8, scales


def stored_name(name):
    """Of the module tree's names, the few that differ."""
    for kind in ("self_attention_res", "mlp_res", "output_attn_res"):
        name = name.replace(kind + ".", kind + "_")
    if name.endswith(("_res_norm", "_res_proj")):
        return name + ".weight"
    return name.replace("block_sparse_moe.bias", "block_sparse_moe.gate.e_score_correction_bias")


def tensors(state):
    """(name, dtype, array) of everything that is stored."""
    stacks = {}
    for name, value in state.items():
        w = value.detach().numpy()
        head, _, last = name.rpartition(".")
        if last in ("w1", "w2", "w3"):
            stacks.setdefault(head + ".", {})[last] = w
            continue
        if last == "load":
            continue
        if last == "A_log":
            w = np.concatenate([w, np.zeros(geo.KDA_DIM - len(w), np.float32)])
        name = stored_name(name)
        if name.endswith("_res_proj.weight"):
            w = w.reshape(1, -1)
        full = name if name.startswith("lm_head") else "model." + name
        yield full, F32 if is_f32(name) else BF16, w
    for head, stacked in stacks.items():
        yield from expert_tensors("model." + head, stacked)


def write_shard(path, entries):
    """The released order: F32, BF16, U8, each by name."""
    entries = sorted(entries, key=lambda e: ((F32, BF16, U8).index(e[1]), e[0]))
    header, data, at = {}, [], 0
    for name, dtype, w in entries:
        raw = bf16(w).tobytes() if dtype == BF16 else np.ascontiguousarray(
            w, np.float32 if dtype == F32 else np.uint8).tobytes()
        header[name] = {"dtype": dtype, "shape": list(w.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))
    return at


def write_checkpoint(state, folder):
    """The weights, the index and the two configs; the tokenizer's files are tokenizer.py's."""
    os.makedirs(folder, exist_ok=True)
    shards = [[] for _ in range(geo.LAYERS + 1)]
    for name, dtype, w in tensors(state):
        layer = int(name.split(".")[2]) if name.startswith("model.layers.") else geo.LAYERS
        shards[layer].append((PREFIX + name, dtype, w))
    where, total = {}, 0
    for i, entries in enumerate(shards):
        file = "model-%05d-of-%06d.safetensors" % (i + 1, len(shards))
        total += write_shard(os.path.join(folder, file), entries)
        where.update((name, file) for name, _, _ in entries)
    put = lambda name, value: write_json(os.path.join(folder, name), value)
    put("model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))})
    put("config.json", geo.config())
    put("generation_config.json", {"max_length": 1048576, "eos_token_id": geo.RANKS + 2})


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def pack(folder, path):
    """All files of the folder as a plain ustar archive: the same bytes for the same files."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as f:
                data = f.read()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
