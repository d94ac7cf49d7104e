# SPDX-License-Identifier: Apache-2.0
# With everything there, setup says nothing; without a compiler and without rights, it names the packages and the command.
setup=$FIXTURES/../../scripts/setup
"$setup"
echo "all there: $?"
CC="env cc" "$setup"
echo "a compiler with arguments: $?"
nobody=()
[ "$(id -u)" -eq 0 ] && nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
mkdir none && printf '#!/bin/sh\nexit 1\n' >none/sudo && chmod -R 755 none . ..
PATH="$PWD/none:$PATH" CC=/nonexistent/cc "${nobody[@]}" bash <"$setup"
echo "nothing there: $?"
