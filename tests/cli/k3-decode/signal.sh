# SPDX-License-Identifier: Apache-2.0
# A signal while it waits for a prompt: the report says so and the program dies by the signal.
export K3_MODEL=$ODD/model
for signal in INT TERM; do
    coproc D { exec env --default-signal=$signal k3-decode --gen 3 --report r.json 2>err; }
    to=${D[1]} from=${D[0]} pid=$D_PID
    echo 7 >&"$to" && read -r answer <&"$from" && echo "$answer"
    # Asleep, so waiting: its state is the word after the name.
    until grep -q ') S' "/proc/$pid/stat"; do sleep 0.05; done
    kill -s $signal "$pid"
    wait "$pid"; echo "$signal: exit $?"
    exec {to}>&-
    jsonq r.json error
    grep -c interrupted err
    rm r.json
done
