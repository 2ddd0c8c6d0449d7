#!/usr/bin/env python3
"""Checks the corpus of the demo model (README.md tells the format) and prints how much there is."""
import glob
import json
import os
import re
import sys

FIELDS = {"id": str, "think": str, "answer": str, "ask": list, "held": list, "must": list}
THINK_WORDS, ANSWER_WORDS, QUESTION_CHARS = 14, 50, 120
# The one class of questions without an end: everything that is not k3chat.
OPEN_FILE = "honest"

errors = []


def complain(fact, text):
    errors.append("%s: %s: %s" % (fact["file"], fact.get("id", "?"), text))


def fold(question):
    """Two questions are the same if they differ in case and punctuation only."""
    return " ".join(re.sub(r"[^a-z0-9+/_.%-]+", " ", question.lower()).strip(" .").split())


def read_file(path):
    name = os.path.splitext(os.path.basename(path))[0]
    facts = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            try:
                fact = json.loads(line)
            except ValueError as e:
                errors.append("%s:%d: no JSON: %s" % (path, number, e))
                continue
            fact["file"] = name
            if check_form(fact):
                facts.append(fact)
    return facts


def check_form(fact):
    before = len(errors)
    for key in fact.keys() - FIELDS.keys() - {"file"}:
        complain(fact, "unknown field %r" % key)
    for key, kind in FIELDS.items():
        if not isinstance(fact.get(key), kind) or not fact[key]:
            complain(fact, "field %r is missing, empty or no %s" % (key, kind.__name__))
    if len(errors) > before:
        return False
    for key in ("ask", "held", "must"):
        if not all(isinstance(s, str) and s == s.strip() and s for s in fact[key]):
            complain(fact, "%r has an element that is no text, empty or padded" % key)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fact["id"]):
        complain(fact, "the id has other characters than a-z, 0-9 and single hyphens")
    return len(errors) == before


def check_lengths(fact):
    if len(fact["think"].split()) > THINK_WORDS:
        complain(fact, "the thought has more than %d words" % THINK_WORDS)
    if len(fact["answer"].split()) > ANSWER_WORDS:
        complain(fact, "the answer has more than %d words" % ANSWER_WORDS)
    for q in fact["ask"] + fact["held"]:
        if len(q) > QUESTION_CHARS:
            complain(fact, "a question is longer than %d characters: %s" % (QUESTION_CHARS, q))
    if not all(32 <= ord(c) < 127 for c in json.dumps(fact, ensure_ascii=False)):
        complain(fact, "a character is not printable ASCII")
    if fact["file"] == OPEN_FILE:
        return
    if not 8 <= len(fact["ask"]) <= 32:
        complain(fact, "%d questions in 'ask', not 8 to 32" % len(fact["ask"]))
    if not 2 <= len(fact["held"]) <= 3:
        complain(fact, "%d questions in 'held', not 2 or 3" % len(fact["held"]))


def check_questions(facts):
    seen = {}
    for fact in facts:
        for kind in ("ask", "held"):
            for q in fact[kind]:
                if fold(q) in seen:
                    complain(fact, "%s %r is also in %s" % (kind, q, seen[fold(q)]))
                seen[fold(q)] = "%s of %s" % (kind, fact["id"])


def is_right(fact, answer):
    """An answer is right when every expression of 'must' is found in it."""
    return all(re.search(m, answer, re.IGNORECASE) for m in fact["must"])


def check_musts(facts):
    for fact in facts:
        try:
            if not is_right(fact, fact["answer"]):
                complain(fact, "'must' does not match its own answer")
            for other in facts:
                if other["must"] != fact["must"] and is_right(fact, other["answer"]):
                    complain(fact, "'must' matches the answer of %s too" % other["id"])
        except re.error as e:
            complain(fact, "'must' is no regular expression: %s" % e)
        if fact["file"] != OPEN_FILE:
            for other in facts:
                if other is not fact and other["must"] == fact["must"]:
                    complain(fact, "'must' is that of %s too" % other["id"])


def print_counts(facts):
    print("%-10s %5s %5s %5s" % ("file", "facts", "ask", "held"))
    for name in sorted({f["file"] for f in facts}) + ["total"]:
        of = [f for f in facts if name in (f["file"], "total")]
        print("%-10s %5d %5d %5d" % (name, len(of), sum(len(f["ask"]) for f in of),
                                     sum(len(f["held"]) for f in of)))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    paths = sorted(glob.glob(os.path.join(here, "*.jsonl")))
    facts = [fact for path in paths for fact in read_file(path)]
    ids = [f["id"] for f in facts]
    for fact in facts:
        check_lengths(fact)
        if ids.count(fact["id"]) > 1:
            complain(fact, "the id is used more than once")
    check_questions(facts)
    check_musts(facts)
    print_counts(facts)
    for e in errors:
        print(e, file=sys.stderr)
    if errors or not facts:
        sys.exit("check.py: %d problems" % len(errors) if facts else "check.py: no facts in " + here)


if __name__ == "__main__":
    main()
