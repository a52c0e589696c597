# SPDX-License-Identifier: Apache-2.0
"""A dataset of facts, rules and queries as arrays, numbered as Leeway numbers it: constants from 1
by the bytes of their names, predicates likewise with True, False and Endf behind, variables above
the constants, 0 for padding. Reads `pred(a,b).` and `name:weight:b(x,h), c(h,y) -> head(x,y)`."""
import os
import re

import numpy as np

ATOM = re.compile(r"\s*([^\s,(][^(]*)\(([^,()]+),([^,()]+)\)\s*\.?\s*")


class DatasetError(Exception):
    """What this reader cannot make sense of, with file and line."""


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if line and not line.startswith("%"):
                yield number, line


def parse_atom(text, where):
    m = ATOM.fullmatch(text)
    if not m:
        raise DatasetError("%s: '%s' is no atom with two arguments" % (where, text))
    return tuple(x.strip().strip("'") for x in m.groups())


def parse_rule(text, where):
    """(head, [body]) of names."""
    if " -> " not in text or text.count(":") < 2:
        raise DatasetError("%s: only rules of the form name:weight:body -> head" % where)
    body, head = text.split(":", 2)[2].split(" -> ")
    atoms = re.findall(r"[^\s,(][^(]*\([^()]*\)", body)
    return parse_atom(head, where), [parse_atom(a, where) for a in atoms]


def read_atoms(path):
    return [parse_atom(line, "%s:%d" % (path, n)) for n, line in lines_of(path)]


def read_rules(path):
    return [parse_rule(line, "%s:%d" % (path, n)) for n, line in lines_of(path)]


def read_domains(path):
    names = set()
    if os.path.exists(path):
        for _, line in lines_of(path):
            words = line.split()
            if len(words) > 1:
                names.update(w.strip("'") for w in words[1:])
    return names


def numbered(names):
    return {n: i + 1 for i, n in enumerate(sorted(names, key=lambda s: s.encode()))}


class Base:
    """Arrays of int64: facts [F,3] in order, rules by head in the order of the file."""

    def __init__(self, folder, rules=None):
        self.folder = folder
        rules_path = rules or os.path.join(folder, "rules.txt")
        facts = read_atoms(os.path.join(folder, "train.txt"))
        clauses = read_rules(rules_path)
        names = read_domains(os.path.join(folder, "domain2constants.txt"))
        names.update(x for f in facts for x in f[1:])
        self.constant = numbered(names)
        self.predicate = numbered({f[0] for f in facts}
                                  | {a[0] for h, b in clauses for a in [h] + b})
        self.n_constants, self.n_predicates = len(self.constant), len(self.predicate)
        self.true, self.false, self.endf = (self.n_predicates + i for i in (1, 2, 3))
        self.names = ([""] + sorted(self.predicate, key=self.predicate.get),
                      [""] + sorted(self.constant, key=self.constant.get))
        self.facts = np.unique(np.array([self.atom(f) for f in facts], np.int64), axis=0)
        self.fact_start, self.fact_count = self.ranges(self.facts[:, 0])
        self.set_rules(clauses, rules_path)

    def atom(self, text):
        """Numbers of (predicate, first, second); the arguments are constants."""
        try:
            return (self.predicate[text[0]], self.constant[text[1]], self.constant[text[2]])
        except KeyError as e:
            raise DatasetError("%s: unknown name %s" % ("%s(%s,%s)" % text, e)) from e

    def text(self, atom):
        p, a, b = (int(x) for x in atom)
        return "%s(%s,%s)" % (self.names[0][p], self.names[1][a], self.names[1][b])

    def ranges(self, predicates):
        """First row and number of rows of every predicate, terminals included."""
        rows = self.n_predicates + 4
        count = np.bincount(predicates, minlength=rows).astype(np.int64)
        return np.concatenate([[0], np.cumsum(count)[:-1]]), count

    def set_rules(self, clauses, path):
        """Variables are numbered in each rule by first appearance, head first, from
        n_constants + 1."""
        clauses = sorted(clauses, key=lambda c: self.predicate[c[0][0]])  # stable
        most = max(len(b) for _, b in clauses)
        self.heads = np.zeros((len(clauses), 3), np.int64)
        self.bodies = np.zeros((len(clauses), most, 3), np.int64)
        for i, (head, body) in enumerate(clauses):
            if head[1] == head[2]:
                raise DatasetError("%s: a head with one variable twice is not dealt with here"
                                   % path)
            seen = {}
            for k, a in enumerate([head] + body):
                row = [self.predicate[a[0]]] + [
                    self.n_constants + 1 + seen.setdefault(x, len(seen)) for x in a[1:]]
                if k == 0:
                    self.heads[i] = row
                else:
                    self.bodies[i, k - 1] = row
        self.rule_start, self.rule_count = self.ranges(self.heads[:, 0])

    def queries(self, split, limit=0):
        atoms = read_atoms(os.path.join(self.folder, split + ".txt"))
        return np.array([self.atom(a) for a in atoms[:limit or None]], np.int64)
