# SPDX-License-Identifier: Apache-2.0
# The bytes depend on config and seed alone, not on who writes them; every option that should change them does.
c=$ODD/model/config.json
mkckpt -q --config "$c" --threads 1 a
mkckpt -q --config "$c" --threads 5 b
mkckpt -q --config "$c" --seed 2 other
diff -r a b
for s in a/model-*-of-*; do
    cmp -s "$s" "other/${s#a/}" && echo "${s#a/} does not depend on the seed"
done
mkckpt --config "$c" --layers 3 --experts 4 cut
tr -d " \n" <cut/config.json | grep -o -E "\"(num_hidden_layers|num_experts|full_attn_layers|kda_layers)\":[^a-z]*,"
