"""The demo model's own vocabulary: byte pairs learned from the corpus, in K3's file formats.

How text is cut into pieces and how a conversation is rendered comes from the slow reference of the
tests, which the C code is compared with as well.
"""
import base64
import json
import os
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tests/reference"))
import text_reference as reference  # noqa: E402

SPECIALS = {0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>",
            5: "<|sep|>", 6: "[start_header_id]", 7: "[end_header_id]", 9: "[EOT]",
            18: "<|media_begin|>", 19: "<|media_content|>", 20: "<|media_end|>",
            21: "<|media_pad|>", 65: "<osagent_mode>", 254: "[UNK]", 255: "[PAD]"}
STRIPPED = (2, 6, 7, 9, 18, 19, 20, 21, 65)     # additional_special_tokens

PROTOCOL = ["message", " role", '="', "system", "user", "assistant", " type", "thinking-effort",
            "think", "response", reference.EFFORT % "low", reference.EFFORT % "high",
            reference.EFFORT % "max"]


def byte_order():
    """The single bytes in GPT-2's order: printable Latin-1 first, then the rest."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return printable + [b for b in range(256) if b not in printable]


def learn(texts, ranks):
    """texts: Counter of texts. The tokens in rank order; ties go to the pair that sorts first."""
    words = Counter()
    for text, count in texts.items():
        for piece in reference.PATTERN.findall(text):
            words[piece.encode()] += count
    split = {w: [w[i:i + 1] for i in range(len(w))] for w in words}
    tokens = [bytes([b]) for b in byte_order()]
    while len(tokens) < ranks:
        pairs = Counter()
        for w, parts in split.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[w]
        best = min(pairs, key=lambda p: (-pairs[p], p))
        tokens.append(best[0] + best[1])
        for parts in split.values():
            i = 0
            while i + 1 < len(parts):
                if (parts[i], parts[i + 1]) == best:
                    parts[i:i + 2] = [tokens[-1]]
                i += 1
        split = {w: parts for w, parts in split.items() if len(parts) > 1}
    return tokens


def write(tokens, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tiktoken.model"), "w", encoding="ascii") as f:
        for rank, token in enumerate(tokens):
            f.write("%s %d\n" % (base64.b64encode(token).decode(), rank))
    added = {str(len(tokens) + i): {"content": name, "lstrip": False, "normalized": False,
                                    "rstrip": False, "single_word": False, "special": True}
             for i, name in SPECIALS.items()}
    config = {"added_tokens_decoder": added,
              "additional_special_tokens": [SPECIALS[i] for i in STRIPPED],
              "bos_token": "[BOS]", "clean_up_tokenization_spaces": False, "eos_token": "[EOS]",
              "pad_token": "[PAD]", "tokenizer_class": "TikTokenTokenizer", "unk_token": "[UNK]"}
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
        f.write("\n")


class Encoder:
    """Conversations as ids, with the ids that the model itself would have written marked."""

    def __init__(self, folder):
        self.tok = reference.Tokenizer(folder)
        self.known = {}
        self.eos, self.end = (self.tok.encode(s, True)[0] for s in ("[EOS]", "<|end_of_msg|>"))

    def encode(self, text, special):
        if special:
            return self.tok.encode(text, True)
        ids = []
        for piece in reference.PATTERN.findall(text):
            if piece not in self.known:
                self.known[piece] = self.tok.merge(piece.encode())
            ids += self.known[piece]
        return ids

    def render(self, messages, effort, prompt):
        """Ids of the conversation; effort None = thinking off; prompt = with what asks for an
        answer."""
        options = {"thinking": effort is not None, "thinking_effort": effort or "low",
                   "add_generation_prompt": prompt}
        segments = reference.Renderer(options).render(messages)
        return [i for text, special in segments for i in self.encode(text, special)]

    def lesson(self, messages, effort):
        """(ids, wanted): wanted[i] is what should follow ids[i], -1 where that is not learned.

        A turn ends with [EOS] when the model writes it and with <|end_of_msg|> in a prompt, so that
        the one is wanted where the other stands."""
        ids, wanted = [], []
        for n, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            prompt = self.render(messages[:n], effort, True)
            whole = self.render(messages[:n + 1], effort, False)
            assert whole[:len(prompt)] == prompt and whole[-1] == self.end
            wanted += [-1] * (len(prompt) - 1 - len(wanted)) + whole[len(prompt):-1] + [self.eos]
            ids = whole
        return ids[:-1], wanted
