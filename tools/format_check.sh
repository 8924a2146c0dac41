#!/usr/bin/env bash
# Are all C and C++ files formatted as .clang-format says? Exit status 0 yes, 1 no (named), 77 no clang-format here.
#
# usage: format_check.sh [--fix] [SOURCE_DIRECTORY]
set -euo pipefail

fix=false
if [[ ${1:-} == --fix ]]; then
  fix=true
  shift
fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

if ! command -v clang-format >/dev/null; then
  echo "format_check: SKIPPED, nothing was checked: clang-format is missing; as root: apt-get install clang-format" >&2
  exit 77
fi

mapfile -d '' files < <(find . \( -path './.?*' -o -path ./build \) -prune -o \
  -type f \( -name '*.h' -o -name '*.c' -o -name '*.cc' \) -print0 | sort -z)
if ((${#files[@]} < 50)); then
  echo "format_check: only ${#files[@]} files under $PWD; is this the source tree?" >&2
  exit 1
fi
if $fix; then
  clang-format -i "${files[@]}"
elif ! complaints=$(clang-format --dry-run -Werror "${files[@]}" 2>&1); then
  if ! sed -n 's/:[0-9]*:[0-9]*: .*\[-Wclang-format-violations\]$//p' <<<"$complaints" | sort -u | grep .; then
    echo "$complaints"
  fi
  echo "format_check: these files are not formatted; run tools/format_check.sh --fix" >&2
  exit 1
fi
echo "format_check: ${#files[@]} files"
