#!/bin/sh
# A container image of programs of this machine, with the libraries that they load: for where
# no image can be pulled.
#
#   tools/image-here.sh ENGINE IMAGE:TAG PROGRAM... [+PROGRAM]...
#
# ENGINE is podman or docker. Of a program behind a + only the libraries are taken.
set -eu

[ $# -ge 3 ] || { sed -n '5,7s/^# *//p' "$0" >&2; exit 2; }
engine=$1
image=$2
shift 2

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/etc" "$root/root"
mkdir -m 1777 "$root/tmp"
# As on a Debian machine: programs and libraries are below /usr.
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
ln -s bin "$root/usr/sbin"
ln -s lib "$root/usr/lib64"
echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
echo root:x:0: >"$root/etc/group"

copy() {
  mkdir -p "$root$(dirname "$1")"
  [ -e "$root$1" ] || cp -L "$1" "$root$1"
}

for word in "$@"; do
  program=${word#+}
  path=$(PATH=$PATH:/usr/sbin:/sbin command -v "$program") || { echo "there is no $program here" >&2; exit 1; }
  [ "$word" != "$program" ] || cp -L "$path" "$root/usr/bin/${program##*/}"
  for library in $(ldd "$path" | grep -o '/[^ ]*' || true); do copy "$library"; done
done
tar -C "$root" -c . | "$engine" import - "$image" >/dev/null
