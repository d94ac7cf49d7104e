# SPDX-License-Identifier: Apache-2.0
# sim --budget: the best split; a fast trunk disk moves memory to the experts
k3-trace synth -n 100 --shape 9,1,64,4 --expert-bytes 10M -o t.k3t
k3-trace sim --budget 1G --trunk 700M -d 1G t.k3t
k3-trace sim --budget 1G --trunk 700M -d 250M --trunk-disk 4G t.k3t | tail -n 1
k3-trace sim --budget 1G --trunk 700M --tsv t.k3t | sort -t "$(printf '\t')" -k 8 -n | sed -n 2p
k3-trace sim --budget 1G --trunk 700M --json t.k3t
# too small for one expert: everything goes to the trunk
k3-trace sim --budget 5M --trunk 700M t.k3t | tail -n 1
