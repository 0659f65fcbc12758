#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: a shell on the console. Leaving it switches the guest off.

echo "Linux $(uname -r). The host's root is read-only; results go to $RESULTS, tracefs is /sys/kernel/tracing."
cd "$RESULTS" || exit
shell=/bin/sh
[ ! -x /bin/bash ] || shell=/bin/bash
# The console is no controlling terminal, and a shell without one has no job control.
setsid -c true 2>/dev/null && exec setsid -c "$shell" -i </dev/ttyS0 >/dev/ttyS0 2>&1
exec "$shell" -i
