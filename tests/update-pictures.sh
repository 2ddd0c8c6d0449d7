#!/bin/sh
# Puts the stored pictures of the screen into README.md and docs/, where "<!-- picture: FILE -->" stands
# before a text block. Part of "make update-screens".
set -eu
src=$1
for page in "$src/README.md" "$src"/docs/*.md; do
    awk -v src="$src" '
        inside && /^```$/ { inside = 0 }
        !inside
        picture != "" && /^```text$/ {
            while ((getline line < (src "/" picture)) > 0) print line
            inside = 1
        }
        { picture = "" }
        /^<!-- picture: .* -->$/ { picture = $3 }' "$page" >"$page.tmp"
    if cmp -s "$page.tmp" "$page"; then rm "$page.tmp"; else mv "$page.tmp" "$page"; fi
done
