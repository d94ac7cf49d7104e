# SPDX-License-Identifier: Apache-2.0
# published prompts: their messages come back, and encode to the same ids
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
export K3_MODEL="$K3_REAL"
for input in "$K3_REAL"/xtml_vectors/*_input.json; do
    k3-tok chat <"$input" >prompt
    k3-tok decode <prompt | cmp - "${input%_input.json}_output.txt"
    k3-tok parse <prompt | grep -v '"unfinished"' | grep -e '"role": "assistant"' -e '"role": "user"' >messages
    basename "$input"; cat messages
    sed 's/.*/{"messages": [&], "add_generation_prompt": false, "template_kwargs": {"thinking_effort": null}}/' messages | k3-tok chat -l >again
    while IFS= read -r ids; do
        case " $(cat prompt) " in *" $ids "*) ;; *) echo "other ids: $ids" ;; esac
    done <again
    [ "$(wc -l <again)" -eq "$(wc -l <messages)" ] || echo "messages are lost"
done
