#!/usr/bin/env bash
# Are all C and C++ files formatted as .clang-format says? Exit status 0 yes, 1 no (named), 77 no clang-format here that
# knows: each version formats differently, so one is everybody's.
#
# usage: format_check.sh [--fix] [SOURCE_DIRECTORY]
set -euo pipefail

fix=false
if [[ ${1:-} == --fix ]]; then
  fix=true
  shift
fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

readonly version=14
formatter=""
for program in clang-format-$version clang-format; do
  if [[ $("$program" --version 2>/dev/null) == *" version $version."* ]]; then
    formatter=$program
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "format_check: SKIPPED, nothing was checked: clang-format $version is missing; as root: apt-get install clang-format," >&2
  echo "format_check: where the distribution's is of that version (Debian 12)" >&2
  exit 77
fi

mapfile -d '' files < <(find . \( -path './.?*' -o -path ./build \) -prune -o \
  -type f \( -name '*.h' -o -name '*.c' -o -name '*.cc' \) -print0 | sort -z)
if ((${#files[@]} < 50)); then
  echo "format_check: only ${#files[@]} files under $PWD; is this the source tree?" >&2
  exit 1
fi
if $fix; then
  "$formatter" -i "${files[@]}"
elif ! complaints=$("$formatter" --dry-run -Werror "${files[@]}" 2>&1); then
  if ! sed -n 's/:[0-9]*:[0-9]*: .*\[-Wclang-format-violations\]$//p' <<<"$complaints" | sort -u | grep .; then
    echo "$complaints"
  fi
  echo "format_check: these files are not formatted; run tools/checks/format_check.sh --fix" >&2
  exit 1
fi
echo "format_check: ${#files[@]} files"
