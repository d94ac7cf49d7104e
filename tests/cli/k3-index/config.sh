# SPDX-License-Identifier: Apache-2.0
# what was understood, from the folder alone; a config that is not understood is named, exit 2
. "${0%/*}/common"
k3-index config "$TINY/model"
k3-index config -m "$ODD/model" --json
mkdir m
run k3-index config m
sed 's/"num_experts_per_token": [0-9]*/"num_experts_per_token": 99/; s/"hidden_size"/"hidden_sizes"/' "$TINY/model/config.json" >m/config.json
run k3-index config m
run k3-index build m
[ -z "${K3_REAL:-}" ] || k3-index config "$K3_REAL" | head -n 1 | diff - <(echo "24 MLA + 69 KDA | experts 896 top16 shared2 | latent 3584")
# a number beyond 64 bits is named, not only its line
sed 's/"vocab_size": [0-9]*/"vocab_size": 9223372036854775808/' "$TINY/model/config.json" >m/config.json
run k3-index config m
