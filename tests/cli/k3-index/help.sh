# help and version go to standard output
k3-index --help
k3-index -hV | head -n 1
k3-index build --version
k3-index -V
