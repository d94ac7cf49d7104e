# SPDX-License-Identifier: Apache-2.0
# Drafts from a command: whatever it does, the ids are those without drafts, and nothing of it is left behind.
export K3_MODEL=$ODD/model
cat >recorded.sh <<'END'
# Goes on with the lines of the file "full"; $1 is added to each id.
i=0 && while read -r text; do full[i++]=$text; done <full
while read -r line most ids; do
    set -- "$1" $ids
    at[line]=$((${at[line]:-0} + $# - 1))
    [ "$most" -gt 0 ] && next=(${full[line]}) || continue
    answer=""
    for id in "${next[@]:at[line]:most}"; do answer+=" $(((id + $1) % vocab))"; done
    echo "$answer"
done
END
vocab=$(jsonq "$K3_MODEL/config.json" text_config vocab_size) && export vocab
printf '%s\n' '5 6 7 8' '9 10' 11 >lines
k3-decode -q --gen 40 --stop-id none <lines >plain
k3-decode -q --gen 40 --stop-id none --temperature 0.9 --seed 4 <lines >drawn
drafts() { k3-decode -q --gen 40 --stop-id none --trunk-gb 0 --cache-gb 0 --report r.json "$@" <lines; }

paste -d ' ' lines plain >full
for batch in 1 3; do
    drafts --batch $batch --draft-from 'exec bash recorded.sh 0' | cmp - plain && echo "right, $batch at once"
    [ "$(jsonq r.json drafts accepted)" -ge 20 ] || jsonq r.json drafts
    [ "$(jsonq r.json drafts accepted)" = "$(jsonq r.json drafts proposed)" ] || jsonq r.json drafts
    drafts --batch $batch --draft-from 'exec bash recorded.sh 1' | cmp - plain && echo "wrong, $batch at once"
    [ "$(jsonq r.json drafts proposed)" -ge 3 ] && [ "$(jsonq r.json drafts accepted)" -lt 3 ] || jsonq r.json drafts
done
paste -d ' ' lines drawn >full
drafts --temperature 0.9 --seed 4 --draft-from 'exec bash recorded.sh 0' | cmp - drawn && echo "right and drawn"
[ "$(jsonq r.json drafts accepted)" -ge 20 ] || jsonq r.json drafts

# What a loaded state holds is told too.
head -n 1 lines | k3-decode -q --gen 15 --stop-id none --temperature 0.9 --seed 4 --save-state s >begun
echo | k3-decode -q --gen 25 --stop-id none --temperature 0.9 --seed 4 --trunk-gb 0 --cache-gb 0 --load-state s --report r.json \
    --draft-from 'exec bash recorded.sh 0' | paste -d ' ' begun - | cmp - <(head -n 1 drawn) && echo "right after a saved state"
[ "$(jsonq r.json drafts accepted)" -ge 10 ] || jsonq r.json drafts

# Several answers to one line: each has a number of its own, so that the ids of one are not taken for another's.
k3-decode -q --gen 40 --stop-id none --temperature 0.9 --seed 4 --samples 2 <lines >drawn
while read -r line; do echo "$line"; echo "$line"; done <lines | paste -d ' ' - drawn >full
for batch in 1 6; do
    drafts --batch $batch --temperature 0.9 --seed 4 --samples 2 --draft-from 'tee requests | exec bash recorded.sh 0' | cmp - drawn &&
        echo "right for each of two samples, $batch at once"
    [ "$(jsonq r.json drafts accepted)" = "$(jsonq r.json drafts proposed)" ] && [ "$(jsonq r.json drafts accepted)" -ge 20 ] || jsonq r.json drafts
    cut -d ' ' -f 1 requests | sort -u | tr '\n' ' '; echo
done
