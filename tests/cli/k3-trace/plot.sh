# plot: well-formed SVG of every kind, to a file or standard output
k3-trace synth -n 30 --shape 9,1,64,4 -o t.k3t
for k in curves heat both; do
    k3-trace plot -k $k t.k3t >$k.svg
    echo $k "$(grep -c '<polyline' $k.svg)" "$(grep -c '<rect' $k.svg)"
done
k3-trace plot -o both.2 t.k3t && cmp both.svg both.2
k3-trace plot -p all -u -w 3 --seed 2 --threads 1 -t 'a < b & c' t.k3t | grep -o 'a &lt; b &amp; c'
k3-trace synth -n 0 --shape 5,1,32,4 | k3-trace plot | tail -n 1
k3-trace plot -o no/such/folder t.k3t 2>&1
echo $?
