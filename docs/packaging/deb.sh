#!/bin/sh
# deb.sh TARBALL - builds the Debian package from a distribution tarball, in the folder deb, and has lintian
# look at it where it is installed. Run by "make deb". DEB_BUILD_OPTIONS=nocheck leaves out the suite.
set -eu
for tool in dpkg-buildpackage dh; do
    command -v "$tool" >/dev/null || {
        echo "deb.sh: there is no $tool here (Debian: apt-get install build-essential debhelper)" >&2
        exit 2
    }
done
tarball=$(basename "$1")
name=${tarball%.tar.*}
rm -rf deb
mkdir deb
tar xf "$1" -C deb
cd "deb/$name"
cp -R docs/packaging/debian debian
# Nothing of the surroundings belongs into the package or its tests.
unset K3_SHARED MAKEFLAGS MFLAGS MAKELEVEL
dpkg-buildpackage -b -us -uc
cd ..
rm -rf "$name"
if command -v lintian >/dev/null; then
    lintian --allow-root --info --fail-on error,warning ./*.changes
fi
echo "deb.sh: made" "$PWD"/*.deb
