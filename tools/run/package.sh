# ./run build, install, package: what is made of the tree. Sourced by ./run.

build_help() {
  cat <<'TEXT'
usage: ./run build [TARGET...]

Builds TARGETs (default: everything, tests and benches included) into build/dev.
TEXT
}
build_command() { build "$@"; }

install_help() {
  cat <<'TEXT'
usage: ./run install PREFIX

Builds for release, into build/release, and installs under PREFIX.
TEXT
}
install_command() {
  [[ ${1:-} ]] || install_help | usage
  need "${packages[@]}"
  configure release
  cmake --build build/release >&2
  cmake --install build/release --prefix "$1"
}

package_help() {
  cat <<'TEXT'
usage: ./run package [DIR]

Makes Debian packages of what is committed, in DIR (default: build/package); lintian looks at them.
TEXT
}

# The packages depend on nothing but what is committed: neither on this directory's name nor on the time.
package_command() {
  need "${packages[@]}" build-essential debhelper dpkg-dev fakeroot lintian
  local directory version
  directory=$(realpath -m "${1:-build/package}")
  version=$(dpkg-parsechangelog -S Version)
  rm -rf "$directory/cepheus-$version"
  mkdir -p "$directory"
  git archive --prefix="cepheus-$version/" HEAD | tar -x -C "$directory"
  (cd "$directory/cepheus-$version" && dpkg-buildpackage --no-sign --build=binary) >&2
  rm -rf "$directory/cepheus-$version"
  # A build of our own is for no distribution's archive: what that asks of one is not looked at.
  lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs,bad-distribution-in-changes-file \
    "$directory"/cepheus_"$version"_*.changes
}
