#!/usr/bin/python3
"""Asks k3chat the held-back questions of the corpus and counts the right answers.

    evaluate.py PROGRAM [--model DIR] [--thinking low] [--second] [--every N] [--jobs N]

PROGRAM is the built k3chat; without --model it answers with the demo model in it. An answer is right
when every expression of the fact's "must" is found in it and the turn ended by itself. --second asks
each question as the second of a conversation, behind one about another fact.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import data


def questions(args):
    facts = data.load()
    held = [(f, q) for f in facts for q in f["held"]][::args.every]
    for i, (fact, question) in enumerate(held):
        messages = [{"role": "user", "content": question}]
        if args.second:
            other = facts[(i * 37 + 11) % len(facts)]
            messages = data.Teacher.turn(other, other["ask"][0]) + messages
        yield fact, question, messages


def ask(args, folder, number, messages):
    """The JSON result of a run of the program."""
    chat = os.path.join(folder, "%d.json" % number)
    with open(chat, "w", encoding="utf-8") as f:
        json.dump(messages, f)
    command = [args.program, "--batch", "--chat", chat, "--json", "-", "--thinking", args.thinking,
               "--max-tokens", "250", "--context", "1024", "--threads", "1"]
    if args.model:
        command += ["--model", args.model]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), run.stderr.decode()))
    return json.loads(run.stdout)


def is_right(fact, content):
    return all(re.search(m, content, re.IGNORECASE) for m in fact["must"])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--model")
    p.add_argument("--thinking", default="low")
    p.add_argument("--second", action="store_true")
    p.add_argument("--every", type=int, default=1, help="only each Nth question")
    p.add_argument("--jobs", type=int, default=2)
    args = p.parse_args()
    args.program = os.path.abspath(args.program)
    cases = list(questions(args))
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda c: ask(args, folder, c[0], c[1][2]), enumerate(cases)))
    right, count, ended = collections.Counter(), collections.Counter(), 0
    for (fact, question, _), result in zip(cases, results):
        stopped = result["finish"] == "stop"
        good = stopped and is_right(fact, result["content"])
        ended += stopped
        count[fact["file"]] += 1
        right[fact["file"]] += good
        if not good:
            print("%s: %s\n    %s" % (fact["id"], question, result["content"][:150]))
    for name in count:
        print("%-12s %4d of %4d" % (name, right[name], count[name]))
    total, n = sum(right.values()), len(cases)
    print("right: %d of %d (%.1f %%), ended by itself: %d of %d" % (
        total, n, 100 * total / max(1, n), ended, n))


if __name__ == "__main__":
    main()
