#!/usr/bin/env python3
"""Slow reference of K3's tokenizer, chat renderer and answer parser, apart from the C code.

    text_reference.py check DIR     recompute every vector of DIR, print what differs
    text_reference.py make DIR      write the project's own vectors (text_cases.py) into DIR

The split pattern runs in Python's own `re`, byte pairs are merged by searching the whole piece for
the lowest rank again and again (so `check` passes over texts with pieces of more than 2,000 bytes),
and the parser works on the complete list of tokens. Needed: Python 3.9; its Unicode tables may be
older than 16.0, so the vectors keep to characters that older tables have as well.
"""
import base64
import hashlib
import json
import os
import re
import sys
import unicodedata

# ---- tokenizer ---------------------------------------------------------------------------------

SPACE = [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
         0x205F, 0x3000]
CUT_SPACE = set(map(chr, SPACE + [0x1C, 0x1D, 0x1E, 0x1F]))
HAN = [(0x2E80, 0x2E99), (0x2E9B, 0x2EF3), (0x2F00, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007),
       (0x3021, 0x3029), (0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFA6D),
       (0xFA70, 0xFAD9), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FF1), (0x20000, 0x2A6DF),
       (0x2A700, 0x2B739), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1), (0x2CEB0, 0x2EBE0),
       (0x2EBF0, 0x2EE5D), (0x2F800, 0x2FA1D), (0x30000, 0x3134A), (0x31350, 0x323AF)]


def char_class(points):
    """The inside of a [...] for a set of code points."""
    points, out, i = sorted(points), [], 0
    while i < len(points):
        k = i
        while k + 1 < len(points) and points[k + 1] == points[k] + 1:
            k += 1
        out.append("\\U%08x-\\U%08x" % (points[i], points[k]))
        i = k + 1
    return "".join(out)


def build_pattern():
    by = {}
    for cp in range(0x110000):
        by.setdefault(unicodedata.category(chr(cp)), []).append(cp)
    han = {cp for first, last in HAN for cp in range(first, last + 1)}
    marks = by["Mn"] + by["Mc"] + by["Me"]
    both = by["Lm"] + by["Lo"] + marks
    letters = char_class(by["Lu"] + by["Ll"] + by["Lt"] + by["Lm"] + by["Lo"])
    up = char_class(set(by["Lu"] + by["Lt"] + both) - han)
    lo = char_class(set(by["Ll"] + both) - han)
    numbers = char_class(by["Nd"] + by["Nl"] + by["No"])
    space = char_class(SPACE)
    tail = "(?:'(?:[sS\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?"
    return re.compile("|".join([
        "[%s]+" % char_class(han),
        "[^\\r\\n%s%s]?[%s]*[%s]+%s" % (letters, numbers, up, lo, tail),
        "[^\\r\\n%s%s]?[%s]+[%s]*%s" % (letters, numbers, up, lo, tail),
        "[%s]{1,3}" % numbers,
        " ?[^%s%s%s]+[\\r\\n]*" % (space, letters, numbers),
        "[%s]*[\\r\\n]+" % space,
        "[%s]+(?![^%s])" % (space, space),
        "[%s]+" % space]))


PATTERN = build_pattern()


def hard_pieces(text):
    for at in range(0, len(text), 400000):
        chunk, begin, run, kind = text[at:at + 400000], 0, 0, None
        for i, c in enumerate(chunk):
            k = c in CUT_SPACE
            run = run + 1 if k == kind else 1
            kind = k
            if run > 25000:
                yield chunk[begin:i]
                begin, run = i, 1
        yield chunk[begin:]


class Tokenizer:
    def __init__(self, folder):
        self.rank = {}
        with open(os.path.join(folder, "tiktoken.model"), "rb") as f:
            for line in f.read().split():
                if line.isdigit() and len(self.rank) == int(line) and pending is not None:
                    self.rank[pending] = int(line)
                    pending = None
                else:
                    pending = base64.b64decode(line)
        self.n = len(self.rank)
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as f:
            config = json.load(f)
        added = config.get("added_tokens_decoder", {})
        self.names = [added[str(i)]["content"] if str(i) in added
                      else "<|reserved_token_%d|>" % i for i in range(self.n, self.n + 256)]
        self.special = re.compile("|".join(map(re.escape, sorted(self.names, key=len)[::-1])))
        self.bytes_of = {r: b for b, r in self.rank.items()}
        self.bytes_of.update((self.n + i, s.encode()) for i, s in enumerate(self.names))
        stripped = [config.get(k) for k in ("bos_token", "eos_token", "unk_token", "pad_token")]
        stripped += config.get("additional_special_tokens", [])
        self.stripped = {self.n + i for i, s in enumerate(self.names) if s in stripped}

    def merge(self, piece):
        if piece in self.rank:
            return [self.rank[piece]]
        parts = [piece[i:i + 1] for i in range(len(piece))]
        while len(parts) > 1:
            ranks = [(self.rank.get(a + b, self.n), i)
                     for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            best, i = min(ranks)
            if best == self.n:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [self.rank[p] for p in parts]

    def pieces(self, span):
        return [m.group() for m in PATTERN.finditer(span)]

    def ordinary(self, span):
        return [i for p in self.pieces(span) for i in self.merge(p.encode())]

    def encode(self, text, allow_special):
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        ids = []
        for hard in hard_pieces(text) if text else []:
            at = 0
            for m in self.special.finditer(hard) if allow_special else []:
                ids += self.ordinary(hard[at:m.start()]) + [self.n + self.names.index(m.group())]
                at = m.end()
            ids += self.ordinary(hard[at:])
        return ids

    def decode(self, ids, skip=False):
        return b"".join(self.bytes_of[i] for i in ids if not (skip and i in self.stripped))


# ---- chat rendering ----------------------------------------------------------------------------

EFFORT = ("`thinking_effort` guides on how much to think in your thinking channel (not including "
          "the response channel), supported values include `low`, `medium`, `high`, and `max`.\n"
          "Now the system is invoked with `thinking_effort=%s`.")
TOOLS = ("# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n%s\n```")
MORE_TOOLS = ("## New Tools Available\nThe system dynamically extends the toolset via lazy-loading."
              "\nYou have access to all existing and extended tools.\nHere are the specs for the "
              "extended tools.\n\n```json\n%s\n```")
CHOICE = "The system is invoked with `tool_choice=%s`.\nYou %s tools in the next message."
FORMAT = ("The system is invoked with `response_format=%s`.\nYour response must be raw JSON data "
          "without markdown code blocks (```json) or any additional formatting.")
SCHEMA = "\nThe JSON data must match the following schema:\n```json\n%s\n```"
IMAGE = "<|kimi_image_placeholder|>"


class Refused(Exception):
    pass


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def spaced(value):
    return json.dumps(value, ensure_ascii=False)


class Renderer:
    def __init__(self, options):
        self.o, self.out = options, []
        self.thinking = options.get("thinking", True)
        self.images = options.get("image_prompts")
        self.images = None if self.images is None else list(self.images)

    def put(self, text, special=0):
        if text:
            self.out.append([text, special])

    def open(self, tag, *attrs):
        self.put("<|open|>", 1)
        self.put(tag)
        for key, value in attrs:
            self.put(" " + key)
            self.put('="')
            self.put(value.replace("&", "&amp;").replace('"', "&quot;"))
            self.put('"')
        self.put("<|sep|>", 1)

    def close(self, tag):
        self.put("<|close|>", 1)
        self.put(tag)
        self.put("<|sep|>", 1)

    def image(self):
        if self.images is None:
            self.put(IMAGE, 1)
        elif self.images:
            self.put(self.images.pop(0), 1)
        else:
            raise Refused("image_count")

    def text(self, text):
        if self.images is None:
            return self.put(text)
        first, *rest = text.split(IMAGE)
        self.put(first)
        for part in rest:
            self.image()
            self.put(part)

    def content(self, content):
        if isinstance(content, str):
            self.text(content)
        elif isinstance(content, list):
            for part in content:
                if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                    raise Refused("bad_content")
                if part["type"] in ("image", "image_url"):
                    self.image()
                elif isinstance(part.get("text"), str):
                    self.text(part["text"])
                else:
                    raise Refused("bad_content")
        elif content is not None:
            raise Refused("bad_content")

    def end(self):
        self.close("message")
        self.put("<|end_of_msg|>", 1)

    def system(self, kind, body):
        self.open("message", ("role", "system"), ("type", kind))
        self.put(body)
        self.end()

    def argument(self, key, kind, text):
        self.open("argument", ("key", key), ("type", kind))
        self.text(text)
        self.close("argument")

    def arguments(self, args):
        if args is None or args == "":
            return
        if isinstance(args, dict):
            for key, value in args.items():
                text = value if isinstance(value, str) else spaced(value)
                self.argument(key, json_type(spaced(value)), text)
        elif isinstance(args, str):
            pairs = one_level(args)
            for key, value, source in pairs or []:
                text = value if isinstance(value, str) else source
                self.argument(key, json_type(source), text)
            if pairs is None:
                self.open("json", ("type", "object"))
                self.text(args)
                self.close("json")
        else:
            raise Refused("bad_arguments")

    def assistant(self, m):
        self.calls, self.count = m.get("tool_calls") or [], 0
        self.open("message", ("role", "assistant"), *name_of(m))
        if self.thinking:
            self.open("think")
            self.text(m.get("reasoning_content") or m.get("reasoning") or "")
            self.close("think")
        self.open("response")
        self.content(m.get("content"))
        self.close("response")
        if self.calls:
            self.open("tools")
            for i, call in enumerate(self.calls):
                f = call.get("function") or call
                if not isinstance(f.get("name"), str):
                    raise Refused("bad_tool_call")
                self.open("call", ("tool", f["name"]), ("index", str(i + 1)))
                self.arguments(f.get("arguments"))
                self.close("call")
            self.close("tools")
        self.end()

    def results(self, run):
        names = [(c.get("function") or c).get("name") for c in self.calls]
        ids = [None if c.get("id") is None else str(c["id"]) for c in self.calls]
        order = []
        for m in run:
            i = m["tool_call_id"] if "tool_call_id" in m else m.get("id")
            order.append(ids.index(str(i)) if i is not None and str(i) in ids else -1)
        if min(order) >= 0:
            run = [dict(run[i], tool=names[order[i]])
                   for i in sorted(range(len(run)), key=lambda i: order[i])]
        for m in run:
            self.count += 1
            name = m["tool"] if "tool" in m else m.get("name")
            if name is None and self.count <= len(names):
                name = names[self.count - 1]
            if name is None:
                raise Refused("no_tool_name")
            self.open("message", ("role", "tool"), ("tool", name), ("index", str(self.count)))
            self.content(m.get("content"))
            self.end()

    def conversation(self, messages):
        self.calls, self.count, i = [], 0, 0
        while i < len(messages):
            m = messages[i]
            if not isinstance(m, dict):
                raise Refused("bad_message")
            role, k = m.get("role"), i + 1
            if role == "tool":
                while k < len(messages) and isinstance(messages[k], dict) and \
                        messages[k].get("role") == "tool":
                    k += 1
                self.results(messages[i:k])
            elif role == "assistant":
                self.assistant(m)
            elif role == "system" and m.get("tools"):
                self.system("tool-declare", MORE_TOOLS % compact(m["tools"]))
            elif role in ("system", "user"):
                self.open("message", ("role", role), *name_of(m))
                self.content(m.get("content"))
                self.end()
            else:
                raise Refused("unknown_role")
            i = k

    def render(self, messages):
        o = self.o
        if o.get("tools"):
            self.system("tool-declare", TOOLS % compact(o["tools"]))
        effort = o.get("thinking_effort", "max")
        if self.thinking and effort is not None:
            if effort not in ("low", "high", "max"):
                raise Refused("bad_effort")
            self.system("thinking-effort", EFFORT % effort)
        self.conversation(messages)
        choice = o.get("tool_choice")
        if choice in ("required", "none"):
            self.system("tool-choice", CHOICE % (
                choice, "MUST call" if choice == "required" else "MUST NOT call any"))
        self.response_format(o.get("response_format"))
        if o.get("add_generation_prompt", True):
            self.open("message", ("role", "assistant"))
            self.open("think" if self.thinking else "response")
        if self.images:
            raise Refused("image_count")
        return self.out

    def response_format(self, fmt):
        kind = fmt.get("type") if isinstance(fmt, dict) else fmt
        if kind not in ("json_object", "json_schema"):
            return
        body = FORMAT % kind
        if kind == "json_schema":
            outer = fmt.get("json_schema") if isinstance(fmt, dict) else None
            outer = outer if isinstance(outer, dict) else None
            found = [s for s in (self.o.get("response_schema"), (outer or {}).get("schema"),
                                 (outer or {}).get("json_schema"), outer) if s is not None]
            body += SCHEMA % compact(found[0] if found else None)
        self.system("response-format", body)


def name_of(message):
    return [("name", message["name"])] if message.get("name") else []


def json_type(source):
    return {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean",
            "n": "null"}.get(source[0], "number")


def one_level(text):
    """[(key, value, source text)], or None when the text is no object."""
    scan = json.JSONDecoder(strict=False).scan_once
    skip = re.compile(r"[ \t\n\r]*").match
    out, at = [], skip(text).end()
    try:
        if text[at] != "{":
            return None
        at = skip(text, at + 1).end()
        if text[at] == "}":
            return []
        while True:
            if text[at] != '"':
                return None
            key, at = json.decoder.scanstring(text, at + 1, False)
            at = skip(text, at).end()
            if text[at] != ":":
                return None
            begin = skip(text, at + 1).end()
            value, at = scan(text, begin)
            out.append((scrub(key), scrub(value) if isinstance(value, str) else value,
                        text[begin:at]))
            at = skip(text, at).end()
            if text[at] == "}":
                return out
            if text[at] != ",":
                return None
            at = skip(text, at + 1).end()
    except (ValueError, IndexError, StopIteration, RecursionError):
        return None


def scrub(text):
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# ---- parsing what was generated ----------------------------------------------------------------

SPACES = b" \t\r\n"
KNOWN = {b"think", b"response", b"tools", b"call", b"argument", b"json", b"message"}
MARKS = {"<|open|>", "<|close|>", "<|sep|>"}


def utf8(data):
    return data.decode("utf-8", "replace")


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def strict_json(text):
    def refuse(word):
        raise ValueError(word)
    try:
        json.loads(text, parse_constant=refuse)
        return text.strip(" \t\r\n")
    except ValueError:
        return None


def attributes(header):
    out = {}
    for key, value in re.findall(rb'([A-Za-z0-9_]+)="([^"]*)"', header):
        out.setdefault(key.decode(), utf8(value).replace("&quot;", '"').replace("&amp;", "&"))
    return out


class Answer:
    def __init__(self, start):
        self.state = {"think": "THINK", "response": "RESPONSE"}.get(start, "START")
        self.reasoning, self.content, self.held = b"", b"", b""
        self.calls, self.call, self.next, self.abandoned, self.stopped = [], None, 0, 0, False

    def text(self, data):
        if self.state == "START":
            self.held += data
            if self.held.strip(SPACES):
                self.content, self.held, self.state = self.content + self.held, b"", "RESPONSE"
        elif self.state == "THINK":
            self.reasoning += data
        elif self.state == "RESPONSE":
            self.content += data
        elif self.state in ("ARGUMENT", "JSON"):
            self.value += data

    def leave(self, state):
        if self.state == "CALL" and self.call["name"]:
            self.abandoned += 1
        self.state = state

    def tag(self, mark, header):
        """False when the tag is text."""
        name = (header.split() or [b""])[0]
        if name not in KNOWN:
            return False
        what, s = ("open " if mark == "<|open|>" else "close ") + name.decode(), self.state
        if s in ("ARGUMENT", "JSON"):
            if what != "close " + s.lower():
                return False
            self.end_value()
            self.state = "CALL"
            return True
        self.held = b""
        if s == "DONE":
            return True
        if what in ("open think", "open response", "open tools"):
            self.leave(what[5:].upper())
        elif what == "close think" and s == "THINK":
            self.state = "START"
        elif what == "close response" and s in ("START", "RESPONSE"):
            self.state = "EPILOGUE"
        elif what == "close tools" and s in ("TOOLS", "CALL"):
            self.leave("EPILOGUE")
        elif what == "open call" and s in ("TOOLS", "CALL"):
            self.leave("CALL")
            self.call = {"name": attributes(header).get("tool"), "parts": [], "block": None}
            if self.call["name"]:
                self.call["index"] = self.next
                self.next += 1
        elif what in ("open argument", "open json") and s == "CALL":
            self.value, self.attrs, self.state = b"", attributes(header), what[5:].upper()
            self.ignored = self.call["block"] is not None or \
                (self.state == "JSON" and self.call["parts"] != [])
        elif what == "close call" and s == "CALL":
            if self.call["name"]:
                self.calls.append(dict(self.shown(), arguments=self.arguments(True)))
            self.state = "TOOLS"
        elif what == "close message":
            self.leave("DONE")
        return True

    def end_value(self):
        if self.ignored:
            return
        if self.state == "JSON":
            self.call["block"] = utf8(self.value)
            return
        text, kind = utf8(self.value), self.attrs.get("type", "string")
        value = None if kind == "string" else strict_json(text)
        self.call["parts"].append(quoted(self.attrs.get("key", "")) + ":" +
                                  (quoted(text) if value is None else value))

    def shown(self):
        return {"index": self.call["index"], "name": self.call["name"]}

    def arguments(self, whole):
        if self.call["block"] is not None:
            return self.call["block"]
        text = "".join((",", "{")[i == 0] + p for i, p in enumerate(self.call["parts"]))
        return (text or "{") + "}" if whole else text

    def partial(self):
        if self.state not in ("CALL", "ARGUMENT", "JSON") or not self.call["name"]:
            return None
        text, seen = self.arguments(False), ""
        if self.state != "CALL" and not self.ignored:
            # without an incomplete last character
            data = self.value
            for n in range(1, 4):
                tail = data[-n:] if len(data) >= n else b""
                if tail and tail[0] >= 0xC2 and utf8(tail) == "\ufffd" and \
                        any(is_utf8(tail + more) for more in COMPLETIONS):
                    data = data[:-n]
                    break
            seen = utf8(data)
            if self.state == "ARGUMENT" and self.attrs.get("type", "string") == "string":
                text += (",", "{")[text == ""] + quoted(self.attrs.get("key", "")) + ":" + \
                    quoted(seen)[:-1]
            elif self.state == "JSON":
                text += seen
        return dict(self.shown(), arguments=text)

    def result(self):
        end = "closed" if self.state == "DONE" else "stopped" if self.stopped else "cut"
        return {"reasoning": utf8(self.reasoning), "content": utf8(self.content),
                "tool_calls": [{k: c[k] for k in ("index", "name", "arguments")}
                               for c in self.calls],
                "partial_call": self.partial(), "abandoned_calls": self.abandoned, "end": end,
                "finish_reason": "length" if end == "cut" else
                                 "tool_calls" if self.calls else "stop"}


COMPLETIONS = [bytes([b]) + rest for b in (0x80, 0x90, 0xA0, 0xBF)
               for rest in (b"", b"\x80", b"\x80\x80")]


def is_utf8(data):
    try:
        data.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


def parse(start, pieces):
    """pieces: (bytes, control)."""
    a, mark, header = Answer(start), None, b""
    for data, control in pieces:
        name = data.decode() if control else None
        if name in ("[EOS]", "<|end_of_msg|>"):
            a.stopped = True
            break
        if control and name not in MARKS:
            continue
        if mark and not control:
            header += data
            if len(header) > 4096:
                a.text(mark.encode() + header)
                mark, header = None, b""
        elif mark and name == "<|sep|>":
            if not a.tag(mark, header):
                a.text(mark.encode() + header + b"<|sep|>")
            mark, header = None, b""
        elif control and name != "<|sep|>":
            if mark:
                a.text(mark.encode() + header)
            mark, header = name, b""
        else:
            a.text(data)
    return a.result()


# ---- vectors -----------------------------------------------------------------------------------

def le32(ids):
    return hashlib.sha256(b"".join(i.to_bytes(4, "little") for i in ids)).hexdigest()


def tok_vector(tok, v):
    v = dict(v, ids=tok.encode(v["text"], v["allow_special"]))
    if not v["allow_special"]:
        v["pieces"] = [len(p.encode()) for h in hard_pieces(v["text"]) for p in tok.pieces(h)]
    return v


def long_vector(tok, v):
    text = "".join(s * n for s, n in v["gen"])
    ids = tok.encode(text, v["allow_special"])
    return dict(v, chars=len(text), cuts=[len(h) for h in hard_pieces(text)], n_ids=len(ids),
                sha256=le32(ids), head=ids[:8], tail=ids[-8:])


def bad_vector(tok, v):
    text = utf8(base64.b64decode(v["bytes_b64"]))
    return dict(v, as_text=text, ids=tok.encode(text, False))


def decode_vector(tok, v):
    data = tok.decode(v["ids"])
    return dict(v, bytes_b64=base64.b64encode(data).decode(), text=utf8(data),
                text_skip_special=utf8(tok.decode(v["ids"], True)))


def render_vector(tok, v):
    try:
        segments = Renderer(v["options"]).render(v["messages"])
    except Refused as e:
        return dict(v, error=str(e))
    return dict(v, segments=segments, rendered="".join(t for t, _ in segments),
                ids=[i for t, s in segments for i in tok.encode(t, bool(s))])


def parse_vector(_tok, v):
    pieces = [(base64.b64decode(t), c) for t, c in v["pieces_b64"]] if "pieces_b64" in v else \
        [(t.encode(), c) for t, c in v["pieces"]]
    return dict(v, expect=parse(v["start"], pieces))


KINDS = {"tok-long": long_vector, "tok-badutf8": bad_vector, "tok-decode": decode_vector,
         "chat-render": render_vector, "chat-parse": parse_vector}


def too_slow(text):
    return any(len(m.group().encode()) > 2000 for m in PATTERN.finditer(text))


def check(folder):
    models = {d: Tokenizer(os.path.join(folder, d)) for d in sorted(os.listdir(folder))
              if os.path.exists(os.path.join(folder, d, "tiktoken.model"))}
    default = models.get("o200k-32k") or list(models.values())[0]
    wrong = count = passed_over = 0
    for name in sorted(os.listdir(folder)):
        stem, ext = os.path.splitext(name)
        fn = KINDS.get(stem) or (tok_vector if stem[4:] in models else None)
        if ext != ".jsonl" or not fn:
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            for line in f:
                v = json.loads(line)
                if "gen" in v and too_slow("".join(s * n for s, n in v["gen"])):
                    passed_over += 1
                    continue
                got = fn(models.get(stem[4:], default), v)
                count += 1
                bad = [k for k in got if k in v and got[k] != v[k] and v[k] is not None]
                if bad or ("error" in v) != ("error" in got):
                    wrong += 1
                    print("%s: %s: %s differ" % (name, v.get("id", v.get("name")), bad))
    print("%d vectors, %d differ, %d passed over" % (count, wrong, passed_over))
    return wrong == 0


def make(folder):
    import text_cases
    model = os.path.join(folder, text_cases.MODEL)
    os.makedirs(model, exist_ok=True)
    text_cases.write_model(model)
    tok = Tokenizer(model)
    for stem, cases in text_cases.all_cases(tok).items():
        fn = KINDS.get(stem, tok_vector)
        with open(os.path.join(folder, stem + ".jsonl"), "w", encoding="ascii") as f:
            for case in cases:
                f.write(json.dumps(fn(tok, case), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "make"):
        sys.exit(__doc__)
    if sys.argv[1] == "make":
        make(sys.argv[2])
    sys.exit(0 if check(sys.argv[2]) else 1)
