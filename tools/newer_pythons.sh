#!/usr/bin/env bash
# CPython 3.14 and 3.15 on a Debian that does not have them: newer_pythons.sh FOLDER [--tests], as ./dev pythons calls it.
# Takes Debian unstable's packages, with the C library that they were built for, into FOLDER: nothing else on the machine
# changes, and root is not needed. Each interpreter is made to load that library (patchelf, which must be on PATH).
# 0.2 GB, about a minute. Where both interpreters are there, nothing happens. --tests: with CPython's own tests, 80 MB, and
# the interpreters of the same packages again.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
versions=(3.14 3.15)
missing=()
for version in "${versions[@]}"; do
  tests=$folder/lib/python$version/test/test_threading.py
  if [[ ! -x $folder/bin/python$version || ${2:-} == --tests && ! -e $tests ]]; then missing+=("$version"); fi
done
if ((${#missing[@]} == 0)); then exit 0; fi
fail() { echo "newer_pythons: $1" >&2; exit 1; }

architecture=$(dpkg --print-architecture 2>/dev/null) || fail "there is no dpkg: install Python ${missing[*]} by other means"
case $architecture in
  amd64) loader=ld-linux-x86-64.so.2 ;;
  arm64) loader=ld-linux-aarch64.so.1 ;;
  *) fail "the loader of $architecture is not known here: install Python ${missing[*]} by other means" ;;
esac
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [[ ! -r $keyring ]]; then fail "there is no $keyring to check signatures with: install debian-archive-keyring"; fi
# The mirror that this machine uses already.
mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m 1 -E '/debian/?$' || true)
if [[ -z $mirror ]]; then fail "apt has no Debian mirror among its sources: install Python ${missing[*]} by other means"; fi

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs,unpacked}
echo "deb [signed-by=$keyring] $mirror sid main" >"$work/sources.list"
options=(-qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$work/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache"
  -o APT::Sandbox::User= -o Acquire::Retries=3 -o Acquire::Languages=none)
apt-get "${options[@]}" update
packages=(libc6 libexpat1 zlib1g libssl3t64 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libreadline8t64 libncursesw6 libtinfo6
  libuuid1 libcrypt1 libgcc-s1 libstdc++6 libzstd1)
for version in "${missing[@]}"; do
  packages+=("python$version" "python$version-minimal" "python$version-dev")
  packages+=("libpython$version-minimal" "libpython$version-stdlib" "libpython$version-dev")
  if [[ ${2:-} == --tests ]]; then packages+=("libpython$version-testsuite"); fi
done
(cd "$work/debs" && apt-get "${options[@]}" download "${packages[@]}")
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done

libraries=$folder/lib/libc-of-python
mkdir -p "$folder"/{bin,lib,include} "$libraries"
# One at a time: the same library may lie in two folders. -xtype: not links into the system.
find "$work/unpacked" \( -name 'lib*.so.*' -o -name "$loader" \) -xtype f -exec cp -afL {} "$libraries/" \;
for version in "${missing[@]}"; do
  cp -a "$work/unpacked/usr/lib/python$version" "$folder/lib/"
  cp -a "$work/unpacked/usr/include/python$version" "$folder/include/"
  cp "$work"/unpacked/usr/include/*-linux-gnu/"python$version"/pyconfig.h "$folder/include/python$version/" # Debian's points to it
  new=$folder/bin/.python$version
  cp "$work/unpacked/usr/bin/python$version" "$new"
  patchelf --set-interpreter "$libraries/$loader" --force-rpath --set-rpath "$libraries" "$new"
  "$new" -c 'import ssl, sqlite3, ctypes, lzma, bz2'
  mv "$new" "$folder/bin/python$version" # now it is whole
done
