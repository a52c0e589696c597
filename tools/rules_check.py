#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules against programs of other kinds: SQL for what follows, plain Python for ranks.

    tools/rules_check.py PROGRAM DATASET [--rules FILE] [--queries 300] [--only model|ranks] [--without 5]

model: everything that follows from facts and rules by SQLite (semi-naive: joins begin with the newest facts, until
       nothing is new) against `prove answers 'p(X,Y)'` of every predicate; for some facts again without each
       (--without), since no fact proves itself.
ranks: queries spread over test.txt, both sides, every candidate one by one: the confidences of the rules that
       give it, found by matching bodies atom by atom, sorted and compared as lists; against `prove rank --by rules`.

By hand; needs Python and nothing else.
"""
import argparse
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict


def atom(text):
    open_, close = text.rindex("("), text.rindex(")")
    a, b = text[open_ + 1:close].split(",")
    return text[:open_].strip(), a.strip(), b.strip()


def read_rules(path):
    rules = []
    for line in open(path, encoding="utf-8"):
        line = line.strip()
        if not line:
            continue
        _, weight, rest = line.split(":", 2)
        body, head = rest.split("->")
        atoms = [atom(t + ")") for t in body.split(")") if "(" in t]
        rules.append((float(weight), atom(head), [(p.strip(" ,"), x, y) for p, x, y in atoms]))
    return rules


def read_facts(path):
    return [atom(line.strip()) for line in open(path, encoding="utf-8") if line.strip()]


def run(program, *words):
    out = subprocess.run([program, *words], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(words)}: {out.stderr.strip()}")
    return out.stdout


# ---- what follows ------------------------------------------------------------------------------------------------


def sql_of(rule, first):
    """INSERT of a rule's head from a join of its body with atom `first` among the newest facts (d), all others in t: a
    body joined from there on along shared variables, in an order that CROSS JOIN keeps."""
    _, head, body = rule
    order, left = [first], [i for i in range(len(body)) if i != first]
    seen = set(body[first][1:])
    while left:
        i = max(left, key=lambda i: sum(v in seen for v in body[i][1:]))
        left.remove(i)
        order.append(i)
        seen |= set(body[i][1:])
    place, where = {}, []
    for i in order:
        p, x, y = body[i]
        where.append((f"t{i}.p = ?", p))
        for column, v in (("a", x), ("b", y)):
            if v in place:
                where.append((f"t{i}.{column} = {place[v]}", None))
            else:
                place[v] = f"t{i}.{column}"
    tables = " CROSS JOIN ".join(f"{'d' if i == first else 't'} t{i}" for i in order)
    a, b = place[head[1]], place[head[2]]
    text = (f"INSERT OR IGNORE INTO n SELECT DISTINCT ?, {a}, {b} FROM {tables} WHERE "
            + " AND ".join(w for w, _ in where) + f" AND NOT EXISTS (SELECT 1 FROM t WHERE t.p = ? AND t.a = {a} AND t.b = {b})")
    return text, [head[0]] + [p for _, p in where if p is not None] + [head[0]]


def closure(facts, rules):
    """Semi-naive: each round joins what the round before found with all there is."""
    names = sorted({v for f in facts for v in f} | {a[0] for r in rules for a in [r[1]] + r[2]})
    number = {v: i for i, v in enumerate(names)}
    db = sqlite3.connect(":memory:")
    for table in "tdn":
        db.execute(f"CREATE TABLE {table} (p INT, a INT, b INT, PRIMARY KEY (p, a, b)) WITHOUT ROWID")
    db.execute("CREATE INDEX by_b ON t (p, b, a)")
    db.executemany("INSERT OR IGNORE INTO d VALUES (?, ?, ?)", [tuple(number[v] for v in f) for f in facts])
    numbered = [(w, (number[h[0]], *h[1:]), [(number[p], x, y) for p, x, y in body]) for w, h, body in rules]
    statements = [sql_of(r, i) for r in numbered for i in range(len(r[2]))]
    while db.execute("SELECT count(*) FROM d").fetchone()[0]:
        db.execute("INSERT OR IGNORE INTO t SELECT * FROM d")
        for text, values in statements:
            db.execute(text, values)
        db.execute("DELETE FROM d")
        db.execute("INSERT INTO d SELECT * FROM n")
        db.execute("DELETE FROM n")
    return {(names[p], names[a], names[b]) for p, a, b in db.execute("SELECT p, a, b FROM t")}


def check_model(args, facts, rules):
    began = time.time()
    want = closure(facts, rules)
    print(f"model: SQL: {len(want)} atoms from {len(set(facts))} facts and {len(rules)} rules in "
          f"{time.time() - began:.1f} s")
    got, proved = set(), set()
    words = ["--rules", os.path.abspath(args.rules)] if args.rules else []
    for p in sorted({a[0] for a in want}):
        answers = json.loads(run(args.program, "prove", "answers", args.dataset, f"'{p}'(X,Y)", "--json", "--quiet",
                                 "--least-model-memory", "8192", *words))["answers"]
        got |= {atom(x["atom"]) for x in answers}
        proved |= {atom(x["atom"]) for x in answers if x["depth"] >= 0}
    wrong = len(want ^ got)
    print(f"model: {len(got)} atoms, {wrong} differ")
    known = sorted(set(facts))
    for f in known[::max(1, len(known) // max(1, args.without))][:args.without]:
        without = f in closure([x for x in facts if x != f], rules)
        wrong += without != (f in proved)
    print(f"model: {args.without} facts proved without themselves or not, {wrong} differ in all")
    return wrong


# ---- ranks -------------------------------------------------------------------------------------------------------


class Facts:
    def __init__(self, facts):
        self.all = set(facts)
        self.by = [defaultdict(list), defaultdict(list)]
        self.of = defaultdict(list)
        for p, a, b in self.all:
            self.by[0][p, a].append((a, b))
            self.by[1][p, b].append((a, b))
            self.of[p].append((a, b))

    def match(self, p, x, y):
        if x is not None and y is not None:
            return [(x, y)] if (p, x, y) in self.all else []
        if x is not None:
            return self.by[0].get((p, x), [])
        return self.by[1].get((p, y), []) if y is not None else self.of.get(p, [])


def values(facts, body, bound, wanted, cache):
    """What `wanted` can be, atom by atom with backtracking; bodies as sets of what is still needed."""
    if wanted in bound and not body:
        return {bound[wanted]}
    if not body:
        return set()
    pick = max(range(len(body)), key=lambda i: sum(v in bound for v in body[i][1:]))
    p, x, y = body[pick]
    rest = body[:pick] + body[pick + 1:]
    needed = {v for q in rest for v in q[1:]} | {wanted}
    key = (pick, len(body), tuple(sorted((v, c) for v, c in bound.items() if v in needed | {x, y})))
    if key in cache:
        return cache[key]
    found = set()
    for a, b in facts.match(p, bound.get(x), bound.get(y)):
        if x == y and a != b:
            continue
        found |= values(facts, rest, {**bound, x: a, y: b}, wanted, cache)
    cache[key] = found
    return found


def scores(facts, rules, query, side):
    """candidate -> descending confidences of the rules that give it"""
    p, known = query[0], query[2 - side]
    given = defaultdict(list)
    for weight, head, body in sorted(rules, key=lambda r: -r[0]):
        if head[0] != p:
            continue
        for c in values(facts, body, {head[2 - side]: known}, head[1 + side], {}):
            given[c].append(weight)
    return given


def check_ranks(args, facts, rules):
    base, known = Facts(facts), set(facts)
    test = read_facts(os.path.join(args.dataset, "test.txt"))
    for name in ("valid.txt", "test.txt"):
        known |= set(read_facts(os.path.join(args.dataset, name)))
    names = {x for f in facts for x in f[1:]}
    for line in open(os.path.join(args.dataset, "domain2constants.txt"), encoding="utf-8"):
        names |= set(line.split()[1:])
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "ranks.csv")
        words = ["--rules", os.path.abspath(args.rules)] if args.rules else []
        run(args.program, "prove", "rank", args.dataset, "--by", "rules", "--domains", "no", "--quiet",
            "--save-ranks", out, *words)
        got = {(r["query"], r["mode"]): tuple(int(r[k]) for k in ("higher", "ties", "lower"))
               for r in csv.DictReader(open(out, encoding="utf-8"))}
    wrong = n = 0
    for q in test[::max(1, len(test) // args.queries)][:args.queries]:
        for side, mode in ((0, "head"), (1, "tail")):
            given = scores(base, rules, q, side)
            own = given.get(q[1 + side], [])
            count = [0, 0, 0]
            for c in names - {q[1 + side]}:
                triple = (q[0], c, q[2]) if side == 0 else (q[0], q[1], c)
                if triple in known:
                    continue
                other = given.get(c, [])
                count[0 if other > own else 1 if other == own else 2] += 1
            n += 1
            have = got[f"{q[0]}({q[1]},{q[2]})", mode]
            if have != tuple(count):
                wrong += 1
                print(f"ranks: {q} {mode}: {have}, here {tuple(count)}")
    print(f"ranks: {n} lists of {len(names)} names, {wrong} differ")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("dataset")
    p.add_argument("--rules", help="rules.txt of the dataset, else")
    p.add_argument("--queries", type=int, default=300)
    p.add_argument("--without", type=int, default=5)
    p.add_argument("--only", choices=("model", "ranks"))
    args = p.parse_args()
    facts = read_facts(os.path.join(args.dataset, "train.txt"))
    rules = read_rules(args.rules or os.path.join(args.dataset, "rules.txt"))
    wrong = 0 if args.only == "model" else check_ranks(args, facts, rules)
    wrong += 0 if args.only == "ranks" else check_model(args, facts, rules)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
