#!/bin/sh
# Image layers on a volume of their own are shared by all users.
mountpoint -q /mnt/image-storage || exit 0
for cache in /mnt/image-storage/enroot/cache /mnt/image-storage/enroot-cache; do
    [ -d "$cache" ] && chmod -R a+rwX "$cache"
done
exit 0
