# SPDX-License-Identifier: Apache-2.0
# ids: 256 lines of id, tab, name
k3-tok ids -m "$TINY/model" | sed -n '1,12p;256p'
