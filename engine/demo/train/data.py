"""Lessons made from the corpus: questions as people type them, in conversations of K3's format."""
import collections
import glob
import json
import os
import random
import re

import tokenizer

CORPUS = os.path.join(tokenizer.HERE, "../corpus")
PROTOCOL_COUNT = 40
SYSTEM = ["You are a helpful assistant.", "Answer briefly.", "You are the help of k3chat.",
          "You are Kimi, an AI assistant.", "Be concise and friendly.", "Answer in English.",
          "You answer questions about a program.", "You are a careful assistant. Do not guess."]
FRAMES = ["what is %s", "what is the %s", "what is %s?", "explain %s", "explain the %s",
          "explain %s to me", "tell me about %s", "tell me about the %s", "what does %s mean",
          "what is meant by %s", "%s?", "%s meaning", "what about %s", "describe %s",
          "I want to know about %s", "i don't understand %s", "what do you know about %s",
          "can you explain %s", "help with %s", "what is the meaning of %s", "what does %s do",
          "meaning of %s", "what does the word %s mean", "how do you define %s"]
# Ways to ask the same: a question that matches the one side is put in a form of the other.
REPHRASE = [(re.compile(pattern, re.IGNORECASE), forms) for pattern, forms in [
    (r"(?:what is|what's|what are|explain|describe|tell me about|what is meant by) (.+)", FRAMES),
    (r"what do(?:es)? (.+) mean", FRAMES),
    (r"what does (.+) show", ["what do I see in %s", "what can I see in %s", "what is in %s",
                              "explain %s", "what stands in %s", "what does %s tell me",
                              "what is shown in %s", "what does %s display"]),
    (r"how (?:do I|can I|to|do you|does one) (.+)",
     ["how do I %s", "how can I %s", "how to %s", "how would I %s", "how do you %s",
      "how does one %s", "I want to %s", "is there a way to %s", "show me how to %s", "can I %s",
      "tell me how to %s", "what do I do to %s", "I need to %s", "I would like to %s",
      "what is the way to %s", "can you tell me how to %s", "how could I %s", "how should I %s"]),
    (r"can I (.+)", ["could I %s", "is it possible to %s", "may I %s", "how can I %s", "can you %s",
                     "am I able to %s", "is there a way to %s", "can one %s"]),
    (r"can it (.+)", ["can k3chat %s", "is it able to %s", "can the program %s", "could it %s",
                      "does it %s"]),
    (r"does it (.+)", ["does k3chat %s", "does the program %s", "will it %s", "can it %s"]),
    (r"is it (.+)", ["is k3chat %s", "is the program %s", "is this %s"]),
    (r"where (?:is|are) (.+)", ["where can I find %s", "where do I find %s", "where can I see %s",
                                "in which place is %s", "where do I look for %s"]),
    (r"(?:which|what) (.+) are there", ["list the %s", "name the %s", "what %s are there",
                                        "which %s are there", "tell me all %s", "which %s exist",
                                        "which %s can I choose", "what %s does it have"]),
    (r"how much (.+)", ["how many %s", "what amount of %s"]),
    (r"it says (.+)", ["I see %s", "the screen says %s", "what does %s mean", "there is %s",
                       "I get the message %s", "k3chat says %s", "it tells me %s"])]]
SYNONYMS = {"big": ["large"], "large": ["big"], "memory": ["RAM"], "ram": ["memory"],
            "disk": ["drive", "SSD"], "fast": ["quick"], "computer": ["machine", "PC"],
            "machine": ["computer"], "program": ["k3chat", "app", "tool"], "see": ["view"],
            "k3chat": ["the program", "it", "this"], "show": ["display"], "answer": ["reply"],
            "need": ["want"], "change": ["set", "alter"], "file": ["document"], "text": ["words"],
            "leave": ["exit"], "quit": ["exit"], "start": ["begin"], "stop": ["halt"],
            "old": ["earlier"], "error": ["failure"], "windows": ["panes"], "colours": ["colors"],
            "smallest": ["least"], "minimum": ["least"], "key": ["shortcut"],
            "happens": ["goes on"]}
SMALL = ("the a is do does i my me to it in of what how are can please which there for on that you "
         "of be an and with").split()
BEFORE = ["please ", "hey, ", "so ", "ok, ", "and ", "tell me, ", "can you tell me ", "hi, ",
          "a question: ", "quick question: ", "I wonder, ", "excuse me, ", "hm, ", "well, ",
          "please tell me ", "do you know ", "I'd like to know ", "could you tell me "]
AFTER = [" please", " in k3chat", " here", " then", ", please", " exactly", " actually", " thanks",
         " in this program", " for me", " again"]
# Questions of the rest of the world: what the honest answers are for, in more words than a person
# writes down. {} is a thing.
WORLD = {
    "honest-world": ["what is a {}", "who invented the {}", "tell me about the {}",
                     "what is the best {}",
                     "why is the {} so big", "where does the {} come from", "how old is the {}",
                     "how does a {} work", "what do you think about the {}", "who owns the {}",
                     "when was the {} made", "how many {}s are there", "is the {} dangerous",
                     "what colour is the {}", "explain the {}", "what is the history of the {}",
                     "do you like the {}", "where can I find a {}", "what is the capital of {}"],
    "honest-write": ["write a poem about a {}", "write a story about the {}", "draw a {}",
                     "write code for a {}", "translate {} into Spanish", "write an essay on the {}",
                     "write a song about my {}", "write a letter to the {}", "design a {} for me",
                     "summarise the text about the {}", "write a joke script about a {}"],
    "honest-now": ["what does a {} cost today", "is the {} open now",
                   "what is the news about the {}",
                   "order a {} for me", "who won the {} yesterday", "book a {} for tomorrow",
                   "when does the {} start tonight", "search the internet for a {}"],
    "honest-advice": ["should I buy a {}", "how do I repair my {}", "my {} hurts, what should I do",
                      "how do I cook a {}", "which {} is good for me", "how do I learn the {}",
                      "how can I clean a {}", "is a {} healthy", "how do I build a {}",
                      "where should I go with my {}"]}
THINGS = ("apple banana guitar piano violin castle church tower bridge river lake mountain "
          "island desert forest tiger lion horse cow rabbit spider snake eagle shark dolphin "
          "butterfly rose tulip oak potato tomato cheese soup cake pizza burger sandwich "
          "chocolate wine beer tea car bicycle truck train ship rocket airplane helicopter "
          "submarine robot camera telephone radio television clock watch lamp chair sofa "
          "kitchen garden roof wall bathroom jacket shoe hat king queen pope emperor pirate "
          "doctor lawyer teacher student painter writer singer actor football tennis "
          "basketball chess marathon olympics planet comet galaxy sun moon atom virus "
          "bacteria heart brain stomach knee shoulder hospital medicine vaccine bank dollar "
          "pound tax contract insurance salary holiday hotel passport airport beach wedding "
          "birthday christmas poem novel movie theatre museum opera statue painting "
          "philosophy religion war peace election government parliament country city village "
          "school university exam homework dictionary France Spain Portugal Greece Turkey "
          "Egypt Kenya India China Korea Australia Canada Mexico Brazil Argentina Chile "
          "Norway Sweden Finland Poland Austria Hungary Ireland Scotland").split()


def fold(question):
    """Two questions are the same if they differ in case and punctuation only."""
    return " ".join(re.sub(r"[^a-z0-9+/_.%-]+", " ", question.lower()).strip(" .").split())


def load():
    facts = []
    for path in sorted(glob.glob(os.path.join(CORPUS, "*.jsonl"))):
        with open(path, encoding="utf-8") as f:
            for line in f:
                fact = json.loads(line)
                fact["file"] = os.path.splitext(os.path.basename(path))[0]
                facts.append(fact)
    return facts


def typo(r, text):
    i = r.randrange(len(text))
    kind = r.randrange(4)
    if kind == 0:
        return text[:i] + text[i + 1:]
    if kind == 1:
        return text[:i] + text[i] + text[i:]
    if kind == 2:
        return text[:i] + text[i:i + 2][::-1] + text[i + 2:]
    return text[:i] + r.choice("abcdefghijklmnoprstuvwy") + text[i + 1:]


def rephrase(r, text):
    for pattern, forms in REPHRASE:
        match = pattern.fullmatch(text.rstrip("?.! "))
        if match and r.random() < 0.35:
            return r.choice(forms) % match.group(1)
    return text


def synonym(r, text):
    words = text.split(" ")
    known = [i for i, w in enumerate(words) if w.lower() in SYNONYMS]
    if known and r.random() < 0.15:
        i = r.choice(known)
        words[i] = r.choice(SYNONYMS[words[i].lower()])
    return " ".join(words)


def drop_word(r, text):
    words = text.split(" ")
    small = [i for i, w in enumerate(words) if w.lower() in SMALL]
    if small and len(words) > 2:
        words.pop(r.choice(small))
    return " ".join(words)


def punctuate(r, text):
    kind = r.random()
    if kind < 0.30:
        text = text.rstrip("?.! ")
    elif kind < 0.45:
        text = text.rstrip("?.! ") + "?"
    elif kind < 0.50:
        text = text.rstrip("?.! ") + r.choice(["??", " ?", ".", "!", "...", " "])
    return text


def case(r, text):
    kind = r.random()
    if kind < 0.30:
        return text.lower()
    if kind < 0.55:
        return text[:1].upper() + text[1:]
    return text.upper() if kind < 0.56 else text


class Teacher:
    def __init__(self, seed):
        self.facts, self.seed = load(), seed
        self.held = {fold(q) for f in self.facts for q in f["held"]}
        self.by_id = {f["id"]: f for f in self.facts}
        self.weight = [6.0 if f["file"] == "honest" else 1.0 for f in self.facts]

    def frame(self, r, fact, question):
        """A bare term gets one of the usual questions around it."""
        bare = len(question.split()) <= 3 and fact["file"] not in ("honest", "smalltalk") and \
            question.lower().split()[0] not in ("what", "how", "why", "is", "can", "do", "which")
        if bare and r.random() < 0.5:
            return r.choice(FRAMES) % question.rstrip("?.!")
        return question

    def vary(self, r, fact, question):
        question = self.frame(r, fact, question)
        if fact["file"] not in ("honest", "smalltalk"):
            question = synonym(r, rephrase(r, question))
        if fact["file"] != "honest" and r.random() < 0.12:
            question = drop_word(r, question)
        if r.random() < 0.18:
            before = r.choice(BEFORE)
            question = before + question[0].lower() + question[1:]
        if r.random() < 0.10:
            mark = question[len(question.rstrip("?.!")):]
            question = question.rstrip("?.!") + r.choice(AFTER) + mark
        question = case(r, punctuate(r, question))
        if r.random() < 0.15:
            question = typo(r, question)
        return question

    def ask(self, r, fact):
        """A question to the fact that is none of those held back."""
        while True:
            question = r.choice(fact["ask"])
            if fact["id"] in WORLD and r.random() < 0.4:
                question = r.choice(WORLD[fact["id"]]).format(r.choice(THINGS))
            elif fact["id"] == "honest-maths" and r.random() < 0.5:
                question = r.choice(["what is {} {} {}", "{} {} {}", "how much is {} {} {}",
                                     "calculate {} {} {}"]).format(
                    r.randrange(150), r.choice("+ - * / x plus minus times".split()),
                    r.randrange(150))
            asked = self.vary(r, fact, question)
            if asked.strip() and fold(asked) not in self.held:
                return asked

    def any_fact(self, r):
        return r.choices(self.facts, self.weight)[0]

    def conversation(self, r):
        """(messages, effort)"""
        effort = r.choices([None, "low", "high", "max"], [0.42, 0.36, 0.08, 0.14])[0]
        messages = []
        if r.random() < 0.15:
            messages.append({"role": "system", "content": r.choice(SYSTEM)})
        for _ in range(r.choices([1, 2, 3], [0.55, 0.30, 0.15])[0]):
            fact = self.any_fact(r)
            messages += self.turn(fact, self.ask(r, fact))
        return messages, effort

    @staticmethod
    def turn(fact, question):
        return [{"role": "user", "content": question},
                {"role": "assistant", "reasoning_content": fact["think"],
                 "content": fact["answer"]}]

    def random(self, number):
        return random.Random(self.seed * 1000003 + number)

    def vocabulary(self):
        """Counted texts to learn the vocabulary from; the chat format's own words are in every
        prompt."""
        texts = collections.Counter()
        for text in tokenizer.PROTOCOL:
            texts[text] += PROTOCOL_COUNT
        for fact in self.facts:
            texts[fact["answer"]] += 3
            texts[fact["think"]] += 1
            for question in fact["ask"]:
                texts[question] += 1
        for text in SYSTEM:
            texts[text] += 1
        for lists in WORLD.values():
            for text in lists:
                texts[text] += 1
        for thing in THINGS:
            texts[" " + thing] += 1
        return texts
