# SPDX-License-Identifier: Apache-2.0
# --converse: turns of one sequence, a line of ids out for each in; nothing is fed twice; the state after every answer is
# that of separate runs, and goes on. A SIGINT ends an answer, one without an answer at hand the program.
# Would catch a turn that starts afresh, an id that is fed twice or never, a signal that ends more than the answer.
export K3_MODEL=$TINY/model
opt=(-q --gen 4 --stop-id none)
turns=("77 121 700" "5 6 7" "" "9")
for more in "" "--draft 3" "--memory 16M --chunk 1" "--spill on"; do
    # shellcheck disable=SC2086
    printf '%s\n' "${turns[@]}" | k3-decode "${opt[@]}" --converse $more --save-state all --report r.json >together
    load=""
    for turn in "${turns[@]}"; do
        # shellcheck disable=SC2086
        echo "$turn" | k3-decode "${opt[@]}" $load --save-state one
        load="--load-state one"
    done >apart
    cmp together apart
    cmp <(k3-decode state --ids all) <(k3-decode state --ids one)
    echo "$more: $(jsonq r.json prompt_tokens) ids fed to it, $(jsonq r.json generated_tokens) out; turn 4: $(jsonq r.json sequences 3 prompt_ids)"
    # The whole as one prompt gives the last answer.
    k3-decode state --ids all | cut -d' ' -f1-19 | k3-decode "${opt[@]}" | cmp - <(tail -n 1 apart)
    rm all one r.json
done
# Every id goes through the model once: a row of logits for each but the last one of the answer.
printf '1 2 3\n4\n' | k3-decode "${opt[@]}" --converse --logits l.npy --report r.json >/dev/null
jsonq r.json prompt_tokens; head -c 128 l.npy | tr -dc '(0-9,' ; echo

# SIGINT in the middle of a long answer, then another turn, then SIGINT while it waits.
coproc D { exec env --default-signal=INT k3-decode -q --gen 100000 --context 100000 --stop-id none --slow-reads 300 --trunk-gb 0 --cache-gb 0 --io-depth 1 \
    --converse --save-state s; }
to=${D[1]} from=${D[0]} pid=$D_PID
for turn in "77 121 700" "5 6 7"; do
    echo "$turn" >&"$to"
    read -r -d ' ' first <&"$from"
    kill -s INT "$pid"
    read -r rest <&"$from"
    read -ra answer <<<"$first $rest"
    [ ${#answer[@]} -lt 100000 ] || echo "not ended"
    said="${said:+$said }$turn ${answer[*]}"
done
# the line is written when the state is
[ "$(k3-decode state --ids s)" = "$said" ] && echo "two turns, as said" || echo "other ids"
until grep -q ') S' "/proc/$pid/stat"; do sleep 0.05; done
kill -s INT "$pid"; wait "$pid" 2>/dev/null; echo "exit $?"
# Ended early or not, what follows is what follows.
cut=$(wc -w <<<"$said")
echo 8 | k3-decode "${opt[@]}" --load-state s >a
echo "$said 8" | k3-decode "${opt[@]}" | cmp - a
echo "$said 8" | k3-decode "${opt[@]}" --load-state s --resume | cmp - a
[ "$cut" -ge 8 ] || echo "$cut ids"
for o in --score --perplexity "--batch 2"; do
    # shellcheck disable=SC2086
    k3-decode --converse $o </dev/null; echo "exit $?"
done
