#!/bin/sh
# Runs Pods as processes of this machine, in a network of their own that has the loopback interface only: `machine.sh IMAGE PODS CONTAINER
# LAST`. PODS has a folder for each Pod (CONTAINER says of what form). It ends, with all others, when the one named LAST does.
set -eu
image=$1 pods=$2 container=$3 last=$4
# The root of this machine is a layer of each container, and no layer may lie within another one.
mount -t tmpfs tmpfs /mnt
cp -a "$image" /mnt/image
cp -a "$pods" /mnt/pods
mount -t overlay overlay -o lowerdir=/mnt/image/usr:/usr /usr
ip link set lo up
for pod in /mnt/pods/*; do
  [ "$pod" = "/mnt/pods/$last" ] || unshare --mount --uts sh "$container" "$pod" >&2 &
done
unshare --mount --uts sh "$container" "/mnt/pods/$last"
