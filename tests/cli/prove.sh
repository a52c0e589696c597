# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway prove: check, depths and trace on a small dataset; bad data; the published depths.

mkdir family
printf 'parent(ann,bob).\nparent(bob,cid).\nparent(bob,dan).\nparent(cid,eve).\n' >family/train.txt
printf 'r0:0.9:parent(x,z), parent(z,y) -> grand(x,y)\nr1:0.8:parent(x,z), grand(z,y) -> great(x,y)\n' >family/rules.txt
printf 'grand(ann,dan).\ngreat(ann,eve).\ngrand(ann,bob).\n' >family/test.txt
printf 'grand(ann,dan) 2\ngreat(ann,eve) 4\ngrand(ann,bob) -1\n' >family/test_depths.txt

expect 0 prove check family
out_has '4 facts, 2 rules, 3 predicates (0 recursive), 5 constants'
out_has 'test           3 queries, 3 with a published depth'
out_has 'warning: family: no valid.txt in it'
expect 0 prove check family --json
out_has '"ok": true'
out_has '"recursive_predicates": 0'

expect 0 prove depths family
out_has 'family, test: 3 queries, 2 proved, 1 not'
out_has 'published depths: 3 of 3 equal'
expect 0 prove depths family --json --threads 1
out_has '"query": "great(ann,eve)"'
out_has '"depth": 4'
out_has '"end": "no proof"'
out_has '"equal": 3'
out_has '"steps_per_second"'
out_has '"least_model": {'
expect 0 prove depths family --least-model-memory 0 --json
out_has '"least_model": null'
out_has '"end": "no proof"'
expect 0 prove depths family --max-depth 2
out_has '1 queries with states left at max-depth' # the other has no proof at all
out_has 'published beyond --max-depth, not compared: 1'
out_has '(1 have no proof at all, 1 only longer ones)'
# what was cut is not refuted: without a least model such a query is undecided, with one it is decided
mkdir cut
printf 'p(a,m).\nq(m,n).\nq(m,b).\nr(x,b).\n' >cut/train.txt
printf 's(X,Y) :- p(X,Z), q(Z,W), r(W,Y).\n' >cut/rules.txt
printf 's(a,b).\n' >cut/test.txt
expect 0 prove depths cut --least-model-memory 0
out_has '(1 have no proof at all)'
expect 0 prove depths cut --least-model-memory 0 --padding-atoms 2
out_has '(0 have no proof at all, 1 undecided: a limit was met)'
expect 0 prove depths cut --least-model-memory 0 --padding-atoms 2 --json
out_has '"end": "cut"'
out_has '"undecided": 1'
out_has '"no_proof": 0'
expect 0 prove depths cut --max-fact-pairs 1 --json
out_has '"end": "cut"'
out_has '"undecided": 1'
expect 0 prove depths cut --padding-atoms 2 --json
out_has '"end": "no proof"'
out_has '"undecided": 0'
expect 1 prove trace cut 's(a,b)' --padding-atoms 2 --least-model-memory 0
err_has 'no proof with at most 2 goals (--padding-atoms); undecided beyond'
expect 1 prove trace cut 's(a,b)' --padding-atoms 2
err_has 's(a,b): no proof of at most 20 steps (--max-depth)'
# what the least model knows is traced, though states are longer than the limit
mkdir wide
printf 'p(a,b).\np(b,c).\np(c,d).\n' >wide/train.txt
printf 'r0:1:p(x,h), p(h,i), p(i,y) -> far(x,y)\n' >wide/rules.txt
for query in 'far(a,d)' 'far(X,d)'; do
    expect 0 prove trace wide "$query" --padding-atoms 2
    out_has 'proved in'
    out_has 'p(b,c)'
    err_has 'passes --padding-atoms 2'
    expect 1 prove trace wide 'far(a,d)' --padding-atoms 2 --least-model-memory 0
    err_has 'undecided beyond'
done
expect 1 prove trace wide 'far(a,d)' --padding-atoms 2 --max-states 1
err_has 'far(a,d) has a proof by the least model, but none was found among'
expect 1 prove trace cut 's(a,b)' --max-fact-pairs 1
err_has 'undecided beyond'
expect 1 prove trace cut 's(a,b)'
err_has 's(a,b) has no proof: all'
# a limit is spread over the file, unless the first are asked for
mkdir many
cp family/train.txt family/rules.txt many
for name in ann bob cid dan eve; do printf 'grand(ann,%s).\n' $name; done >many/test.txt
for name in ann bob cid dan eve; do printf 'great(ann,%s).\n' $name; done >>many/test.txt
expect 0 prove depths many --n-queries 2 --json
out_has '"query": "grand(ann,ann)"'
out_has '"query": "great(ann,ann)"'
expect 0 prove depths many --n-queries 2 --query-order first --json
out_has '"query": "grand(ann,bob)"'
err_has 'of 2 predicates 1 have no query among the 2 of 10'
expect 0 prove depths many --n-queries 4 --query-order random --query-seed 3 --json
cp "$out" random
expect 0 prove depths many --n-queries 4 --query-order random --query-seed 3 --json
grep '"query"' random >before
grep '"query"' "$out" | cmp -s - before || fails 'other queries by the same seed'
expect 0 prove depths family --split train --json
out_has '"no_rule": 4'
expect 4 prove depths family --split valid
err_has 'no valid.txt in it'
expect 2 prove depths family --max-depth 0

expect 0 prove trace family 'great(ann,eve)'
out_has 'proved in 4 steps'
out_has '  grand(bob,eve)  rule 1: grand(V1, V2) :- parent(V1, V3), parent(V3, V2)'
out_has '    parent(cid,eve)  fact'
expect 0 prove trace family 'great(ann,eve)' --format prolog
out_has '% ?- great(ann, eve).'
out_has 'great(V1, V2) :- parent(V1, V3), grand(V3, V2).  % rule 2'
expect 0 prove trace family 'great(ann,eve)' --json
out_has '"proved": true'
expect 1 prove trace family 'grand(ann,bob)'
err_has 'grand(ann,bob) has no proof: all'
expect 1 prove trace family 'great(ann,eve)' --max-depth 3
err_has 'no proof of at most 3 steps (--max-depth)'
expect 3 prove trace family 'grand(ann,bib)'
err_has 'constant bib is unknown; did you mean bob?'
expect 3 prove trace family 'grant(ann,bob)'
err_has 'did you mean grand?'
expect 3 prove trace family 'grand(ann'

# open queries: every answer, known or not, and the shortest proof that does not stand on itself
expect 0 prove answers family 'grand(ann,X)'
out_has 'grand(ann,V1): 2 answers, 2 proved, 0 known facts'
out_has '       2      -  grand(ann,cid)'
expect 0 prove answers family 'parent(X,Y)'
out_has 'parent(V1,V2): 4 answers, 0 proved, 4 known facts'
out_has '      -1    yes  parent(ann,bob)'
expect 0 prove answers family 'great(_,eve)' --json
out_has '"atom": "great(ann,eve)"'
out_has '"depth": 4'
expect 0 prove answers family 'great(X,Y)' --max-depth 3
out_has '0 answers'
expect 0 prove answers family 'grand(X,X)'
out_has 'grand(V1,V1): 0 answers'
expect 0 prove trace family 'grand(bob,X)'
out_has 'grand(bob,eve)  rule 1'
expect 1 prove trace family 'grand(eve,X)'
err_has 'grand(eve,X): no answer has a proof of at most 20 steps'
for query in 'grand(ann' 'grand' '' '()' 'grand(,)' 'grand(X,Y,Z)' "grand('X',Y)" 'grand(x,Y)' 'X(ann,bob)' 'grand(ann,X) x'; do
    expect 3 prove answers family "$query"
    [ "$(wc -l <"$err")" = 1 ] || fails "more than one line about '$query'"
done
err_has 'there is something behind it'
expect 2 prove answers family
expect 2 prove trace family 'grand(ann,X)' --max-fact-pairs 1

# ranks by rules, as miners write them too; confidences of their own
expect 0 prove rank family --by rules --save-ranks ranks.csv
out_has 'by 2 rules applied once to 4 facts, max-plus: 5 goals'
grep -q '^"grand(ann,dan)",tail,0.9,0,' ranks.csv || fails 'no rank of grand(ann,dan)'
grep -q '^"great(ann,eve)",tail,0,0,' ranks.csv || fails 'rules are not chained' # grand(bob,eve) is no fact
printf '3\t2\t0.7\tgrand(X,Y) <= parent(X,A), parent(A,Y)\n' >mined
printf '?x  parent  ?z  ?z  parent  ?y   => ?x  grand  ?y\t1\t0.5\t0.7\n' >amie
expect 0 prove rank family --by rules --rules ./mined --skip-unknown --save-ranks mined.csv
expect 0 prove rank family --by rules --rules ./amie --skip-unknown --save-ranks amie.csv
cmp -s mined.csv amie.csv || fails 'AnyBURL and AMIE say the same'
grep -q '^"grand(ann,dan)",tail,0.7,0,' mined.csv || fails 'no confidence of AnyBURL'
expect 0 prove trace family 'grand(ann,dan)' --rules ./mined
printf '0.25\n0.5\n' >confidence
expect 0 prove rank family --by rules --confidence confidence --rule-score noisy-or --json
out_has '"rule_score": "noisy-or"'
printf '0.25\n2\n' >confidence
expect 3 prove rank family --by rules --confidence confidence --rule-score noisy-or
err_has 'rule 2 has a confidence of 2: noisy-or wants 0 to 1'
printf '0.25\n' >confidence
expect 3 prove rank family --by rules --confidence confidence
err_has 'confidence: 1 confidences for 2 rules'
expect 4 prove rank family --by rules --confidence nowhere
expect 2 prove rank family
err_has 'prove rank wants --kge RUN, or --by rules'
expect 2 prove rank family --by rules --kge nowhere
expect 2 prove rank family --kge nowhere --confidence confidence
printf '3\t2\t0.7\tgrand(X,Y) <= parent(X,A\n' >mined
expect 3 prove rank family --by rules --rules ./mined
err_has 'mined:1:'

# bad data: file and line, exit code 3
cp -r family bad
printf 'parent(ann,bob).\nparent(ann bob).\nparent(cid,)\n' >bad/train.txt
expect 3 prove check bad
out_has 'error: bad/train.txt:2: it has one argument, two are needed: parent(ann bob).'
out_has 'error: bad/train.txt:3: an argument is empty: parent(cid,)'
err_has 'bad/train.txt:2:'
expect 3 prove check bad --json
out_has '"ok": false'
expect 3 prove depths bad
cp -r family unbound
printf 'r0:1:parent(x,z) -> grand(x,y)\n' >unbound/rules.txt
expect 3 prove check unbound
err_has "unbound/rules.txt:1: the head's variable y is not bound"
cp -r family unknown
printf 'grand(ann,zoe).\ngrand(ann,dan).\n' >unknown/test.txt
expect 3 prove depths unknown
err_has 'unknown/test.txt:1: constant zoe is in no fact, rule or domain'
expect 0 prove depths unknown --skip-unknown
out_has '1 with unknown names'
mkdir empty
: >empty/train.txt
expect 3 prove check empty
err_has 'empty/train.txt: there is no fact in it'
expect 4 prove check nowhere
err_has 'nowhere: no such directory'
expect 4 prove check empty/train.txt
err_has 'empty/train.txt: not a directory'

# what cannot be read is named with its cause, and not taken for missing
cp -r family folder
mkdir folder/valid.txt
expect 4 prove check folder
err_has 'folder/valid.txt: cannot read: it is a directory'
cp -r family loop
ln -s rules2.txt loop/rules2.txt
rm loop/test.txt
ln -s test.txt loop/test.txt
expect 4 prove check loop
err_has 'loop/test.txt: cannot look at it: Too many levels'
expect 4 prove check family --rules ../loop/rules2.txt
err_has 'no such file'
expect 4 prove check family --rules loop/rules2.txt
err_has 'Too many levels'
mkdir one
printf 'parent(ann,bob).\n' >one/train.txt
printf 'r0:1:parent(x,y) -> parent(y,x)\n' >one/rules.txt
printf 'parent(bob,ann).\n' >one/test.txt
expect 0 prove check one
out_has '1 fact, 1 rule, 1 predicate (1 recursive), 2 constants, 0 domains'
out_has '1 query, 0 with'
expect 2 prove depths
err_has 'dataset'

# rules in circles, and a search that explodes: the limits end it and are reported
cp -r family circle
{
    printf 'grand(X,Y) :- grand(Y,X).\ngrand(X,Y) :- grand(X,Z), grand(Z,Y).\n'
    printf 'grand(X,Y) :- parent(X,Z), parent(X,W), grand(Z,Y), never(W,Y).\n'
    printf 'grand(X,Y) :- parent(Z,X), parent(W,X), grand(Z,Y), never(W,Y).\n'
} >circle/rules.txt
printf 'grand(ann,eve).\n' >circle/test.txt
expect 0 prove check circle
out_has '(1 recursive)'
out_has 'predicate never of a rule'
expect 0 prove depths circle # no limit is met: what follows is finite
out_has '(1 have no proof at all)'
expect 0 prove depths circle --max-states 1000 --least-model-memory 0
out_has '1 queries that met max-states'
expect 0 prove depths circle --least-model-memory 0 --json # endless, but for the states that are cut
out_has '"no_proof": 0'
out_has '"undecided": 1'
expect 0 prove depths circle --padding-atoms 20 --query-memory 1 --least-model-memory 0 --json
out_has '"memory": 1'
expect 1 prove trace circle 'grand(ann,eve)' --max-states 1000
err_has 'no proof of at most 20 steps'
expect 1 prove trace circle 'grand(ann,eve)' --max-states 1000 --least-model-memory 0
err_has 'no proof among the 1000 states within the limit (--max-states)'

if [ -d "${LW_TEST_DATA:-/nowhere}/kg/dprl" ]; then
    expect 0 prove depths "$LW_TEST_DATA/kg/dprl/countries_s3"
    out_has 'published depths: 24 of 24 equal'
else
    echo 'skipped: published depths (LW_TEST_DATA names a directory of data)'
fi
