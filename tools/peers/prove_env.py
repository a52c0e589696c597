# SPDX-License-Identifier: Apache-2.0
"""The padded proof environment in PyTorch: every query of the batch takes every operation of every
step on tensors of one size. Successors of a state are [B, 120, 26, 3] goals while they are derived
and [B, 120, 6, 3] when they are offered. Facts of a predicate are padded to the largest predicate's
number of facts (or, with facts="compact", to the most matches in this batch).

Order and limits are those of docs/proof.md: facts, then rules; at most `states` successors; those
with more than `atoms` goals rejected; those on the path dropped; Endf last. Variables are numbered
by first appearance in each state."""
from dataclasses import dataclass

import torch
from torch.nn.functional import pad


@dataclass
class Limits:
    depth: int = 20
    atoms: int = 6
    states: int = 120
    body_steps: int = 10  # columns of a derived state: atoms + longest body * this
    facts: str = "padded"


@dataclass
class State:
    """B proofs between two steps."""
    query: torch.Tensor     # [B, 3]
    current: torch.Tensor   # [B, A, 3]
    derived: torch.Tensor   # [B, S, A, 3]
    count: torch.Tensor     # [B] successors
    depth: torch.Tensor     # [B]
    done: torch.Tensor      # [B]
    proved: torch.Tensor    # [B]
    seen: torch.Tensor      # [B, depth + 1] hashes of the states on the path
    n_seen: torch.Tensor    # [B]


def first_places(keep, most):
    """[.., N] bool -> [.., most]: positions of the kept ones, in order, then of anything; and how
    many are kept, at most `most`."""
    n = keep.shape[-1]
    place = keep.long().cumsum(-1) - 1
    place = torch.where(keep & (place < most), place, most)  # `most`: a place thrown away
    out = torch.zeros(*keep.shape[:-1], most + 1, dtype=torch.long)
    out.scatter_(-1, place, torch.arange(n).expand(keep.shape))
    return out[..., :most], keep.sum(-1).clamp(max=most)


def take_rows(x, places, count):
    """x [.., N, *tail] at places [.., M]; rows behind `count` become padding."""
    depth = places.dim()
    tail = x.shape[depth:]
    index = places.reshape(*places.shape, *([1] * len(tail))).expand(*places.shape, *tail)
    real = torch.arange(places.shape[-1]) < count[..., None]
    real = real.reshape(*real.shape, *([1] * len(tail)))
    return torch.where(real, x.gather(depth - 1, index), 0)


class Env:
    def __init__(self, base, limits):
        self.limits, self.base, self.constants = limits, base, base.n_constants
        names = ("facts", "fact_start", "fact_count", "heads", "bodies", "rule_start",
                 "rule_count")
        for name in names:
            setattr(self, name, torch.from_numpy(getattr(base, name)))
        self.most_facts = int(self.fact_count.max())
        self.most_rules = int(self.rule_count.max())
        body = self.bodies.shape[1]
        self.width = limits.atoms - 1 + body              # of a successor just derived
        self.columns = limits.atoms + body * limits.body_steps
        self.pack_base = base.n_constants + 1000 + 1
        self.known_keys = self.pack(self.facts).sort().values

    # ---- atoms -----------------------------------------------------------------------------------

    def pack(self, atoms):
        return (atoms[..., 0] * self.pack_base + atoms[..., 1]) * self.pack_base + atoms[..., 2]

    def known(self, atoms, query):
        """Facts among the atoms, but for the query itself; query broadcasts against them."""
        keys = self.pack(atoms)
        at = torch.searchsorted(self.known_keys, keys).clamp(max=len(self.known_keys) - 1)
        ground = (atoms[..., 1:] <= self.constants).all(-1)
        return ground & (self.known_keys[at] == keys) & ~(atoms == query).all(-1)

    def hashes(self, states):
        """Of each state as a multiset of goals: a sum, modulo 2^64."""
        mixed = self.pack(states) * -7046029254386353131  # odd
        mixed = (mixed ^ (mixed >> 29)) * -4658895280553007687
        return torch.where(states[..., 0] != 0, mixed, 0).sum(-1)

    # ---- unification -----------------------------------------------------------------------------

    def by_facts(self, goal, rest, query):
        """Goals left by each fact of the goal's predicate [B,K,A-1,3], which of them unify [B,K],
        and whether one leaves only known facts [B]."""
        rows = torch.arange(self.most_facts)
        p = goal[:, 0]
        ok = rows < self.fact_count[p][:, None]
        at = (self.fact_start[p][:, None] + rows).clamp(max=len(self.facts) - 1)
        fact = self.facts[at]
        a, b = goal[:, 1, None], goal[:, 2, None]
        free_a, free_b = a > self.constants, b > self.constants
        ok = ok & (free_a | (fact[..., 1] == a)) & (free_b | (fact[..., 2] == b))
        ok = ok & ~(free_a & (a == b) & (fact[..., 1] != fact[..., 2]))
        ok = ok & ~(fact == query[:, None]).all(-1)
        if self.limits.facts == "compact":
            places, n = first_places(ok, max(int(ok.sum(1).max()), 1))
            fact = take_rows(fact, places, n)
            ok = torch.arange(places.shape[1]) < n[:, None]
        left = self.bind(rest[:, None], a, fact[..., 1], b, fact[..., 2])
        left = torch.where(ok[..., None, None], left, 0)
        fine = self.known(left, query[:, None, None]) | (left[..., 0] == 0)
        return left, ok, (ok & fine.all(-1)).any(1)

    def bind(self, atoms, a, to_a, b, to_b):
        """atoms [B,?,G,3] with the variables a, b [B,1] of the goal replaced [B,K]."""
        args = atoms[..., 1:]
        a, b = (torch.where(v > self.constants, v, -1)[..., None, None] for v in (a, b))
        bound = torch.where(args == b, to_b[..., None, None], args)
        bound = torch.where(args == a, to_a[..., None, None], bound)
        head = atoms[..., :1].expand(*bound.shape[:-1], 1)
        return torch.cat([head, bound], -1)

    def by_rules(self, goal, rest, next_var):
        """Body and goals left by each rule of the goal's predicate [B,K,W,3], and which rules
        there are [B,K]. Heads have two different variables, so every one of them unifies."""
        rows = torch.arange(self.most_rules)
        p = goal[:, 0]
        ok = rows < self.rule_count[p][:, None]
        at = (self.rule_start[p][:, None] + rows).clamp(max=len(self.heads) - 1)
        head, body = self.heads[at], self.bodies[at]
        shift = (next_var - self.constants - 1)[:, None]
        args = torch.where(body[..., :1] != 0, body[..., 1:] + shift[..., None, None], 0)
        for i in (1, 2):
            variable = (head[..., i] + shift)[..., None, None]
            args = torch.where(args == variable, goal[:, i, None, None, None], args)
        body = torch.cat([body[..., :1], args], -1)
        rest = rest[:, None].expand(-1, self.most_rules, -1, -1)
        out = torch.cat([body, rest], 2)
        return torch.where(ok[..., None, None], out, 0), ok

    # ---- numbering -------------------------------------------------------------------------------

    def canonical(self, states):
        """Variables of each state by first appearance."""
        args = states[..., 1:].flatten(-2)                      # [.., V]
        free = args > self.constants
        first = (args[..., :, None] == args[..., None, :]).int().argmax(-1)
        opens = free & (first == torch.arange(args.shape[-1]))
        number = (opens.long().cumsum(-1) - 1).gather(-1, first) + self.constants + 1
        args = torch.where(free, number, args).unflatten(-1, (states.shape[-2], 2))
        return torch.cat([states[..., :1], args], -1)

    # ---- successors ------------------------------------------------------------------------------

    def derive(self, current, next_var, query):
        """Successors [B,S,columns,3] without known facts, how many, and which queries are proved.
        A goal that is a terminal has neither facts nor rules."""
        o, goal, rest = self.limits, current[:, 0], current[:, 1:]
        facts, facts_ok, proved = self.by_facts(goal, rest, query)
        rules, rules_ok = self.by_rules(goal, rest, next_var)
        both = torch.cat([pad(facts, (0, 0, 0, self.width - facts.shape[2])), rules], 1)
        places, count = first_places(torch.cat([facts_ok, rules_ok], 1), o.states)
        out = pad(take_rows(both, places, count), (0, 0, 0, self.columns - self.width))
        keep = (out[..., 0] != 0) & ~self.known(out, query[:, None, None])
        places, n_atoms = first_places(keep, self.columns)
        out = take_rows(out, places, n_atoms)
        real = torch.arange(o.states) < count[:, None]
        return out, real, proved | (real & (n_atoms == 0)).any(1), n_atoms

    def offer(self, current, query, seen, n_seen):
        """What the policy may choose from: [B,S,A,3], and how many."""
        o = self.limits
        next_var = current[..., 1:].flatten(1).max(1).values.clamp(min=self.constants) + 1
        out, keep, proved, n_atoms = self.derive(current, next_var, query)
        keep = keep & (n_atoms <= o.atoms) & ~proved[:, None]
        out = self.canonical(out[:, :, :o.atoms])
        on_path = self.hashes(out)[:, :, None] == seen[:, None]
        on_path = on_path & (torch.arange(seen.shape[1]) < n_seen[:, None])[:, None]
        places, count = first_places(keep & ~on_path.any(2), o.states)
        terminal = proved | (count == 0)
        count = torch.where(terminal, 0, count.clamp(max=o.states - 1))
        out = take_rows(out, places, count)
        last = torch.where(proved, self.base.true,
                           torch.where(terminal, self.base.false, self.base.endf))
        here = torch.arange(o.states) == count[:, None]
        out[:, :, 0, 0] = torch.where(here, last[:, None], out[:, :, 0, 0])
        return out, count + 1

    def begin(self, query):
        n, o = len(query), self.limits
        current = torch.zeros(n, o.atoms, 3, dtype=torch.long)
        current[:, 0] = query
        seen = torch.zeros(n, o.depth + 1, dtype=torch.long)
        seen[:, 0] = self.hashes(current)
        ones = torch.ones(n, dtype=torch.long)
        none = torch.zeros(n, dtype=torch.bool)
        derived, count = self.offer(current, query, seen, ones)
        return State(query, current, derived, count, ones * 0, none, none, seen, ones)

    def step(self, s, choice):
        """Every query goes on, derives and is numbered; those that are done keep their state."""
        o = self.limits
        taken = s.derived.gather(1, choice[:, None, None, None].expand(-1, 1, o.atoms, 3))[:, 0]
        current = torch.where(s.done[:, None, None], s.current, taken)
        depth = s.depth + ~s.done
        p = current[:, 0, 0]
        proved = s.proved | (p == self.base.true)
        done = s.done | (p > self.base.n_predicates) | (depth >= o.depth)
        place = s.n_seen.clamp(max=o.depth)[:, None]
        hashes = torch.where(s.done[:, None], s.seen.gather(1, place),
                             self.hashes(current)[:, None])
        seen = s.seen.scatter(1, place, hashes)
        n_seen = (s.n_seen + ~s.done).clamp(max=o.depth + 1)
        derived, count = self.offer(current, s.query, seen, n_seen)
        return State(s.query, current, derived, count, depth, done, proved, seen, n_seen)
