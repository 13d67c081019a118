#!/bin/sh
# root.sh DEB FOLDER: the root of an image, on a Debian with libssl3, libgcc-s1 and
# ca-certificates. Nothing in it is a shell, and nothing is unpacked at a start.
set -eu
deb=$1 root=$2
mkdir -p "$root"
dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" ./usr/lib/tunnel ./usr/share/doc/tunnel
for folder in "$root"/usr/lib/tunnel/*; do
  case ${folder##*/} in
  runtime-*) mv "$folder" "$root/usr/lib/tunnel/runtime" ;;
  tunnel-*) mv "$folder" "$root/usr/lib/tunnel/program" ;;
  esac
done
# Without a folder to remember in, the runtime reads again what imports what: 25
# MB more at each start for what is named by a literal. Nothing cleans up here.
sed -i 's/\bimport(\("[^"]*"\))/import(String(\1))/g' "$root"/usr/lib/tunnel/program/*.js
# What the runtime is linked to, what it opens, and what looks names up.
libraries=$(ldconfig -p)
add() { mkdir -p "$root${1%/*}"; cp -L "$1" "$root$1"; }
ldd "$root/usr/lib/tunnel/runtime/tunnel" | while read -r name arrow path _; do
  case $name in
  /*) add "$name" ;;
  *) [ "$arrow" != "=>" ] || add "$path" ;;
  esac
done
for name in libssl.so.3 libcrypto.so.3 libresolv.so.2 libnss_files.so.2 libnss_dns.so.2; do
  path=$(echo "$libraries" | sed -n "s|^[[:space:]]*$name .*=> ||p" | head -n 1)
  add "$path"
done
add /etc/ssl/certs/ca-certificates.crt
add /etc/nsswitch.conf
echo "nonroot:x:65532:65532::/nonexistent:/nonexistent" >"$root/etc/passwd"
echo "nonroot:x:65532:" >"$root/etc/group"
mkdir -p "$root/proc" "$root/dev" "$root/sys" "$root/tmp" "$root/var/lib/tunnel" "$root/usr/bin"
# For `kubectl exec … -- tunnel status`: the kernel gives one flag, ENV the others.
cat >"$root/usr/bin/tunnel" <<'END'
#!/usr/lib/tunnel/runtime/tunnel -qA
import { main } from "/usr/lib/tunnel/program/main.js";
await main();
END
chmod 755 "$root/usr/bin/tunnel"
# What is mounted there has its mode of this folder.
chmod 1777 "$root/tmp"
# A volume that is mounted there takes over who may.
chmod 700 "$root/var/lib/tunnel"
chown 65532:65532 "$root/var/lib/tunnel"
