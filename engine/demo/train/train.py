#!/usr/bin/python3
"""Trains the demo model; README.md tells how. Stopped and started again it goes on where it was."""
import argparse
import math
import os
import time

import torch
import torch.nn.functional as F

import data
import export
import fast
import geometry as geo
import tokenizer
from model import K3

POOL, DRILLS = 150, 500     # conversations and drills that are sorted by length together
DRILL = 8                   # tokens that a drill goes on behind the question


class Batches:
    """Batches by number: the same number gives the same batch."""

    def __init__(self, teacher, encoder, tokens):
        self.teacher, self.encoder, self.tokens = teacher, encoder, tokens
        self.pool, self.left = 0, []

    def fill(self):
        r = self.teacher.random(self.pool)
        self.pool += 1
        lessons = [self.encoder.lesson(*self.teacher.conversation(r)) for _ in range(POOL)]
        lessons += [self.drill(r) for _ in range(DRILLS)]
        lessons.sort(key=lambda x: len(x[0]))
        batch = []
        for lesson in lessons:
            if batch and len(lesson[0]) * (len(batch) + 1) > self.tokens:
                self.left.append(batch)
                batch = []
            batch.append(lesson)
        self.left.append(batch)
        r.shuffle(self.left)

    def drill(self, r):
        """A question and the beginning of its answer: which answer it is, is what takes long to
        learn, and how the answer goes on does not."""
        fact = self.teacher.any_fact(r)
        effort = r.choice(["low", "low", "high", "max"]) if r.random() < 0.6 else None
        ids, wanted = self.encoder.lesson(self.teacher.turn(fact, self.teacher.ask(r, fact)), effort)
        end = next(i for i, w in enumerate(wanted) if w >= 0) + DRILL
        return ids[:end], wanted[:end]

    def next(self):
        if not self.left:
            self.fill()
        return collate(self.left.pop())


def collate(lessons):
    """ids [B, T], the flat positions that are learned, and what is wanted there."""
    longest = max(len(ids) for ids, _ in lessons)
    ids = torch.full((len(lessons), longest), geo.VOCAB - 1)
    wanted = torch.full((len(lessons), longest), -1)
    for i, (a, b) in enumerate(lessons):
        ids[i, :len(a)] = torch.tensor(a)
        wanted[i, :len(b)] = torch.tensor(b)
    where = (wanted.flatten() >= 0).nonzero().squeeze(1)
    return ids, where, wanted.flatten()[where]


def held_lessons(teacher, encoder, effort):
    return [encoder.lesson(teacher.turn(f, q), effort) for f in teacher.facts for q in f["held"]]


def held_share(model, lessons):
    """The share of held-back questions whose answer the model would write word for word."""
    right = 0
    lessons = sorted(lessons, key=lambda x: len(x[0]))
    model.eval()
    with torch.no_grad():
        for at in range(0, len(lessons), 32):
            part = lessons[at:at + 32]
            ids, where, wanted = collate(part)
            wrong = model(ids, where).argmax(-1) != wanted
            rows = torch.div(where, ids.shape[1], rounding_mode="floor")
            right += len(part) - len(rows[wrong].unique())
    for moe in model.moes():
        moe.load.zero_()
    model.train()
    return right / max(1, len(lessons))


def rate(step, done, args):
    """Warm-up, then a cosine down to a hundredth; done: the share of the run that is behind."""
    warm = min(1.0, (step + 1) / args.warmup)
    return args.rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))


def save(path, model, opt, step, pool, seconds):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step, "pool": pool,
                "seconds": seconds}, path + ".new")
    os.replace(path + ".new", path)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("out", help="folder of the run")
    p.add_argument("--steps", type=int, default=5000)
    p.add_argument("--minutes", type=float, default=1e9,
                   help="end after so long, if the steps are not done before")
    p.add_argument("--tokens", type=int, default=3072, help="in a batch, with padding")
    p.add_argument("--rate", type=float, default=3e-3)
    p.add_argument("--warmup", type=int, default=100)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--balance", type=float, default=3e-3, help="step of the router's bias")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--check-every", type=int, default=250)
    p.add_argument("--save-seconds", type=float, default=120)
    return p.parse_args()


def vocabulary(args, teacher):
    """Learned once, at the start of a run."""
    folder = os.path.join(args.out, "model")
    if not os.path.exists(os.path.join(folder, "tokenizer_config.json")):
        tokenizer.write(tokenizer.learn(teacher.vocabulary(), geo.RANKS), folder)
    return tokenizer.Encoder(folder)


def learn(model, opt, batch, step, done, args):
    ids, where, wanted = batch
    loss = F.cross_entropy(model(ids, where), wanted)
    loss.backward()
    opt.step(rate(step, done, args))
    spread = max(float(m.load.max() / m.load.mean()) for m in model.moes())
    for moe in model.moes():
        moe.balance(args.balance * (1 - done))
    return loss.item(), spread


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    teacher = data.Teacher(args.seed)
    encoder = vocabulary(args, teacher)
    model, last = K3(), os.path.join(args.out, "last.pt")
    opt = fast.AdamW(list(model.named_parameters()), args.decay)
    batches, begin, before = Batches(teacher, encoder, args.tokens), 0, 0
    if os.path.exists(last):
        kept = torch.load(last)
        model.load_state_dict(kept["model"])
        opt.load_state_dict(kept["opt"])
        begin, batches.pool, before = kept["step"], kept["pool"], kept["seconds"]
    held = held_lessons(teacher, encoder, "low") + held_lessons(teacher, encoder, None)
    print("%d parameters, %d facts, %d held lessons; from step %d" % (
        sum(p.numel() for p in model.parameters()), len(teacher.facts), len(held), begin),
        flush=True)
    mean, start, step, done = None, time.time(), begin, 0.0
    saved = since = start
    while done < 1:
        seconds = before + time.time() - start
        done = min(1.0, max(step / args.steps, seconds / 60 / args.minutes))
        loss, spread = learn(model, opt, batches.next(), step, done, args)
        mean = loss if mean is None else 0.95 * mean + 0.05 * loss
        step += 1
        if step % 25 == 0:
            print("step %d loss %.4f busiest expert %.2f, %.1f s a step, done %.3f" % (
                step, mean, spread, (time.time() - since) / 25, done), flush=True)
            since = time.time()
        if step % args.check_every == 0 or done == 1:
            print("step %d held %.3f" % (step, held_share(model, held[::5])), flush=True)
        if time.time() - saved > args.save_seconds or done == 1:
            save(last, model, opt, step, batches.pool, seconds)
            saved = time.time()
    folder = os.path.join(args.out, "model")
    export.write_checkpoint(model.state_dict(), folder)
    export.pack(folder, os.path.join(args.out, "model.tar"))


if __name__ == "__main__":
    main()
