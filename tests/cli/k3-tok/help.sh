k3-tok --help
k3-tok -V
k3-tok encode -h | cmp - <(k3-tok --help)
