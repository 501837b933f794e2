#!/usr/bin/env bash
# Gets Open MPI, with its Python, and OpenSSH into target/openmpi (40 MB), for the test in which a real mpirun starts processes on workers.
# It installs nothing outside of that folder, and does nothing where it is there already. `rm -r target/openmpi` undoes it.
#
# They are Debian's or Ubuntu's packages. After that, target/openmpi/root has `usr` and `etc` as a machine has them on which they are
# installed, without what it has anyhow: the test lays them over its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${CARGO_TARGET_DIR:-target}/openmpi
root=$folder/root

if [ -e "$folder/complete" ]; then
  exit 0
fi
rm -rf "$folder"
mkdir -p "$root/usr/bin" "$root/etc"
if ! scripts/unpack.sh "$root" openmpi-bin python3-mpi4py openssh-client openssh-server iproute2; then
  echo "openmpi.sh: that did not work" >&2
  rm -rf "$folder"
  exit 1
fi
# Where /lib is a link to /usr/lib, packages may bring either.
for part in bin lib sbin; do
  if [ -d "$root/$part" ]; then
    mkdir -p "$root/usr/$part"
    cp -a "$root/$part/." "$root/usr/$part/"
    rm -r "${root:?}/$part"
  fi
done
# What packages do when they are installed: the name of the program among alternatives, and the user of sshd.
if [ -e "$root/usr/bin/mpirun.openmpi" ]; then
  ln -s mpirun.openmpi "$root/usr/bin/mpirun"
fi
if ! id sshd >/dev/null 2>&1; then
  { cat /etc/passwd; echo 'sshd:x:110:65534::/run/sshd:/usr/sbin/nologin'; } >"$root/etc/passwd"
fi
touch "$folder/complete"
echo "openmpi.sh: Open MPI and OpenSSH, $(du -sh "$folder" | cut -f1)" >&2
