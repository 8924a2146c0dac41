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
usage: ./run package [--rpm] [DIR]

Makes Debian packages of what is committed, in DIR (default: build/package); lintian looks at them.
--rpm: one RPM instead, by CPack, for this machine's libraries; rpmlint looks at it.
TEXT
}

# The packages depend on nothing but what is committed: neither on this directory's name nor on the time.
package_command() {
  if [[ ${1:-} == --rpm ]]; then
    shift
    package_rpm "$@"
    return
  fi
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

package_rpm() {
  need "${packages[@]}" rpm rpmlint cpio
  local directory source
  directory=$(realpath -m "${1:-build/package}")
  source=$directory/cepheus-rpm
  rm -rf "$source"
  mkdir -p "$source"
  git archive HEAD | tar -x -C "$source"
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  # The places of distributions that use RPM; what such a build links is this machine's.
  (cd "$source" && configure release -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR=lib64 \
    -DCMAKE_SKIP_RPATH=ON -DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY=ON -DCMAKE_INSTALL_SO_NO_EXE=0 -DCEPHEUS_DPDK=OFF)
  cmake --build "$source/build/release" --target installed >&2
  (cd "$source/build/release" && cpack -G RPM -B "$directory") >&2
  rm -rf "$source" "$directory/_CPack_Packages"
  rpmlint --config tests/packages/rpmlint.toml "$directory"/cepheus-*.rpm
}
