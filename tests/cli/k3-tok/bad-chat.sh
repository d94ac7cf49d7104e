# SPDX-License-Identifier: Apache-2.0
# requests that are not understood: exit 1, the field named, nothing written
export K3_MODEL="$TINY/model"
try() { printf '%s' "$1" | k3-tok chat >out; echo "${PIPESTATUS[1]} $(wc -c <out) $1"; }
say() { try '{"messages": ['"$1"']}'; }
try ''
try '{"messages": [}'
try '{"messages": [], "messages": []}'
try '{}'
try '{"messages": {}}'
try '{"messages": [], "temperature": 0.5}'
try '{"messages": [], "tools": {}}'
try '{"messages": [], "tool_choice": {"type": "function", "function": {"name": "f"}}}'
try '{"messages": [], "tool_choice": "any"}'
try '{"messages": [], "response_format": {"type": "yaml"}}'
try '{"messages": [], "response_format": {"type": "json_schema"}}'
try '{"messages": [], "add_generation_prompt": 1}'
try '{"messages": [], "template_kwargs": true}'
try '{"messages": [], "template_kwargs": {"thinking": "no"}}'
try '{"messages": [], "template_kwargs": {"thinking_effort": "medium"}}'
try '{"messages": [], "template_kwargs": {"thinking_effort": 3}}'
try '{"messages": [], "template_kwargs": {"effort": "low"}}'
say '"hello"'
say '{"content": "x"}'
say '{"role": "robot", "content": "x"}'
say '{"role": "user", "content": 7}'
say '{"role": "user", "content": ["x"]}'
say '{"role": "user", "content": [{"type": "video"}]}'
say '{"role": "user", "content": [{"type": "text"}]}'
say '{"role": "user", "content": "x", "refusal": "y"}'
say '{"role": "user", "content": "x", "name": 7}'
say '{"role": "user", "content": "x", "name": "a\u0000b"}'
say '{"role": "user", "tools": [{}]}'
say '{"role": "system", "tools": {}}'
say '{"role": "assistant", "tool_calls": "x"}'
say '{"role": "assistant", "tool_calls": [{"function": {}}]}'
say '{"role": "assistant", "tool_calls": [{"name": "f", "arguments": 7}]}'
say '{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{\"a\": 1, \"a\": 2}"}]}'
say '{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{\"a\": 1e999}"}]}'
say '{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}'
printf '[]\n[]\n[7]\n[]\n' | k3-tok chat -l -c
sed 's/<|media_pad|>/<|media_bad|>/' "$TINY/model/tokenizer_config.json" >tokenizer_config.json
cp "$TINY/model/tiktoken.model" .
echo '[]' | k3-tok chat -m .; echo $?
# a field of an unexpected type is refused by name, never taken for absent
{
    for value in 7 '"x"' '{}'; do
        for field in messages tools tool_choice response_format add_generation_prompt template_kwargs; do
            echo '{"messages": [], "'$field'x": null, "'$field'": '"$value}"
        done
        for field in role content name tools tool_calls tool_call_id id tool reasoning_content reasoning; do
            for role in system user assistant tool; do echo '[{"role": "'$role'", "'$field'": '"$value}]"; done
        done
        for field in type text image image_url; do echo '[{"role": "user", "content": [{"type": "text", "text": "", "'$field'": '"$value}]}]"; done
        for field in id type function name arguments index; do echo '[{"role": "assistant", "tool_calls": [{"'$field'": '"$value}]}]"; done
        for field in type json_schema; do echo '{"messages": [], "response_format": {"type": "json_schema", "json_schema": {}, "'$field'": '"$value}}"; done
        echo '[{"role": "assistant", "tool_calls": ['"$value]}]"
        echo '{"messages": [], "tools": ['"$value]}"
        echo '[{"role": "system", "tools": ['"$value]}]"
        echo '{"messages": [], "template_kwargs": {"thinking_effort": '"$value}}"
        echo '{"messages": [], "response_format": {"type": "json_schema", "json_schema": {"schema": '"$value}}}"
    done
} >odd
while IFS= read -r line; do
    printf '%s' "$line" | k3-tok chat -m "$TINY/model" >out 2>why
    printf '%s\t%s\n' "$?" "$line"
    sed 's/^k3-tok: standard input: /\t/' why
done <odd
# the last of two equal names counts in what is not ours, and is refused in what is
try '{"messages": [], "tools": [{"a": 1, "a": 2}], "tools": []}'
try '{"messages": [], "template_kwargs": {"thinking": true, "thinking": false}}'
try '[{"role": "user", "role": "system"}]'
printf '\357\273\277[]' | k3-tok chat
printf '[\357]' | k3-tok chat
exit 0
