#!/bin/sh
# Becomes the container of a Pod on this machine: `container.sh POD`, in tables of mounts and of host names of its own. The folder POD has
#
#   name      the host name
#   layer/    files that the image has, and the folders on which volumes are mounted
#   volumes   lines of a folder beside it and the path on which it is mounted
#   command   `NAME=VALUE` for each variable, then the command, each with a zero byte behind it
#
# The image is what this machine has, under what is in /mnt/image. What the container writes is gone with it.
set -eu
pod=$1
mount -t tmpfs container /srv
mkdir /srv/upper /srv/work /srv/root
mount -t overlay overlay -o "lowerdir=$pod/layer:/mnt/image:/,upperdir=/srv/upper,workdir=/srv/work" /srv/root
cd /srv/root
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs run
mkdir -m 755 run/sshd
while read -r folder path; do
  mount --bind "$pod/$folder" ".$path"
done <"$pod/volumes"
hostname "$(cat "$pod/name")"
chroot . ssh-keygen -q -A
exec xargs -0 -a "$pod/command" chroot . env -i
