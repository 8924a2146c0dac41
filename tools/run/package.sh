# ./run build, install, package, spack: products of the tree. Sourced by ./run.

build_help() {
  cat <<'TEXT'
usage: ./run build [TARGET...]

Build TARGETs (default: everything, with tests and benches) into build/dev.
TEXT
}
build_command() { build "$@"; }

install_help() {
  cat <<'TEXT'
usage: ./run install PREFIX

Build for release into build/release, and install under PREFIX.
TEXT
}
install_command() {
  [[ ${1:-} ]] || install_help | usage
  need "${packages[@]}"
  configure release
  cmake --build build/release --target installed >&2
  cmake --install build/release --prefix "$1"
}

package_help() {
  cat <<'TEXT'
usage: ./run package [DIR]

Make Debian packages of the last commit in DIR (default: build/package), and check them by lintian. Remove older ones of
Cepheus there.
TEXT
}

# The packages depend only on the commit: neither on this directory's name nor on the time.
package_command() {
  need "${packages[@]}" build-essential debhelper dpkg-dev fakeroot lintian
  local directory version
  directory=$(realpath -m "${1:-build/package}")
  version=$(dpkg-parsechangelog -S Version)
  rm -rf "$directory/cepheus-$version"
  rm -f "$directory"/{cepheus,libmcast}*_*.{deb,buildinfo,changes}  # users and the container install all that are there
  mkdir -p "$directory"
  git archive --prefix="cepheus-$version/" HEAD | tar -x -C "$directory"
  (cd "$directory/cepheus-$version" && dpkg-buildpackage --no-sign --build=binary) >&2
  rm -rf "$directory/cepheus-$version"
  # The packages are not for a distribution's archive, so checks of its own rules are off.
  lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs,bad-distribution-in-changes-file \
    "$directory"/cepheus_"$version"_*.changes
}

spack_help() {
  cat <<'TEXT'
usage: ./run spack

Build the Spack recipe's variants in build/spack, with its options and Debian's libraries: none, each alone, all, all but
each. Compare the files that each installs with a list.
TEXT
}
spack_command() {
  need "${packages[@]}" libdpdk-dev
  /usr/bin/python3 -B tools/spack/check.py build/spack
}
