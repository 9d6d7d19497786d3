#!/bin/bash
# A user in the shared root, with a home and a key by which it reaches every node. Done once: an account that exists stays.
set -euo pipefail
root=/mnt/jail
homes=${HOMES:-/home}
in_root() { chroot "$root" "$@"; }

if [ ! -e "$root/etc/soperator-jail-populated" ]; then
    echo "The shared root is not populated: there is no $root/etc/soperator-jail-populated." >&2
    exit 1
fi
if grep -q "^$USER_NAME:" "$root/etc/passwd"; then
    echo "There is a user $USER_NAME."
else
    mkdir -p "$root$homes"
    in_root useradd --create-home --home-dir "$homes/$USER_NAME" --shell /bin/bash \
        ${USER_GROUPS:+--groups "$USER_GROUPS"} "$USER_NAME"
    echo "User $USER_NAME was added, with its home in $homes."
fi
home=$(grep "^$USER_NAME:" "$root/etc/passwd" | cut -d: -f6)
owner=$(grep "^$USER_NAME:" "$root/etc/passwd" | cut -d: -f3,4)
keys=$root$home/.ssh
if [ ! -e "$keys/id_ecdsa" ]; then
    mkdir -p "$keys"
    in_root ssh-keygen -q -t ecdsa -N '' -C "$USER_NAME" -f "$home/.ssh/id_ecdsa"
    cat "$keys/id_ecdsa.pub" >> "$keys/authorized_keys"
    chmod 0700 "$keys"
    chmod 0600 "$keys/authorized_keys"
    chown -R "$owner" "$keys"
fi
# Nodes may keep what they know of a directory for some seconds.
sleep "${SETTLE_SECONDS:-20}"
