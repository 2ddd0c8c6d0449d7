#!/bin/sh
# Compares README.md and docs/ with the program and the tree. Prints TAP.
#
# Every block of commands (```sh, ```console) in the Markdown files has a comment right above it:
#   <!-- run -->       the block is run (sh -e) and must succeed
#   <!-- run: chat --> the same; its chats open as lines of text (--plain) on an empty stdin
#   <!-- run: N -->    of a ```console block, the lines after "$ " are run and must end with status N, and
#                      each other line must be in what they print; "..." stands for anything
#   <!-- not run: REASON -->, <!-- chat command -->, <!-- test command --> (.ci/run runs these two)
# All blocks share one scratch folder and a home folder, in which `k3chat` is the program just built and
# ~/kimi-k3 a tiny checkpoint. What stands as `k3chat ...` in the text is run as well, with DIR, NAME,
# FILE, IDS and N put in and every --model that one. <!-- picture: FILE --> stands before a copy of a stored picture of the screen.
set -u
LC_ALL=C.UTF-8
export LC_ALL
src=${K3_SRCDIR:?} build=${K3_BUILDDIR:?}
work=$(mktemp -d "${TMPDIR:-/tmp}/k3chat-docs-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/scratch" "$work/home"
ln -s "$build/k3chat" "$work/bin/k3chat"
printf '#!/bin/sh\nexec "%s/k3chat" "$@" --plain </dev/null\n' "$build" >"$work/scratch/k3chat"
chmod +x "$work/scratch/k3chat"
PATH=$work/bin:$PATH
HOME=$work/home
XDG_DATA_HOME=$work/data XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
K3CHAT_CONF=$src/conf
export PATH HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME K3CHAT_CONF
guide=$src/docs/guide.md
formats=$src/docs/formats.md
pages="$src/README.md $src/docs/*.md"

n=0
# Passes when the file of complaints is empty or absent.
report() # name, complaints
{
    n=$((n + 1))
    if [ -s "$2" ]; then
        sed 's/^/# /' "$2"
        echo "not ok $n - $1"
    else
        echo "ok $n - $1"
    fi
}
# Complains of each line of stdin that is no line of a file.
missing_from() # file, what to say
{
    sort -u | while IFS= read -r word; do
        grep -qxF -e "$word" "$1" || echo "$word: $2"
    done
}
# Complains of each line of stdin that does not occur in a file, as a word of its own.
unnamed_in() # file, what to say
{
    sort -u | while IFS= read -r word; do
        grep -qwF -e "$word" "$1" || echo "$word: $2"
    done
}

# ---- the manual page -----------------------------------------------------------------------------
k3chat --print-man >"$work/man" 2>&1
cmp -s "$work/man" "$src/docs/k3chat.1" || {
    echo "docs/k3chat.1 is behind the tables; run make update-man"
    diff "$src/docs/k3chat.1" "$work/man" | head -n 20
} >"$work/c"
report "the manual page is what the program prints" "$work/c"

# ---- options -------------------------------------------------------------------------------------
for command in "" doctor verify trace bench "bench kernels" "bench ladder" "bench threads" "bench io"; do
    # shellcheck disable=SC2086 # a list of words
    k3chat $command --help
done >"$work/help" 2>&1
k3chat --help | sed -n 's/^ *k3chat \([a-z][a-z]*\).*/\1/p' | sort -u >"$work/commands"
while read -r command; do
    k3chat "$command" --help
done <"$work/commands" >>"$work/help" 2>&1
grep -oE -e '--[a-z][a-z-]+' "$work/help" | sort -u >"$work/options"
{
    cat "$work/options"
    "$src/configure" --help | grep -oE -e '--[a-z][a-z-]+' # switches of the build
    sh "$src/autogen.sh" --help | grep -oE -e '--[a-z][a-z-]+'
    "$build/make-checkpoint" --help | grep -oE -e '--[a-z][a-z-]+'
    grep -ohE -e '"--[a-z][a-z-]+"' "$src"/engine/demo/train/*.py | tr -d '"'
    echo --print-man
    echo --budgte # the mistyped one of the guide
} | sort -u >"$work/known"
# shellcheck disable=SC2086
grep -ohE -e '(^|[^a-z-])--[a-z][a-z-]+' $pages | grep -oE -e '--[a-z][a-z-]+' |
    missing_from "$work/known" "named in README or docs, but no option" >"$work/c"
report "every option named is one" "$work/c"
k3chat --help | grep -oE -e '^  --[a-z-]+' | tr -d ' ' |
    unnamed_in "$guide" "an option that docs/guide.md does not name" >"$work/c"
report "the guide names every option" "$work/c"

# ---- commands and make targets ---------------------------------------------------------------------
{
    # shellcheck disable=SC2086
    grep -ohE '`k3chat [a-z]+' $pages | cut -d' ' -f2 |
        missing_from "$work/commands" "named as a command, but there is none"
    sed 's/^/k3chat /' "$work/commands" | unnamed_in "$guide" "not described in docs/guide.md"
    k3chat bench --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' >"$work/benches"
    # shellcheck disable=SC2086
    grep -ohE 'k3chat bench [a-z]+' $pages | cut -d' ' -f3 |
        missing_from "$work/benches" "named as a measurement, but there is none"
    sed 's/^/k3chat bench /' "$work/benches" | unnamed_in "$guide" "not named in docs/guide.md"
} >"$work/c"
report "commands exist and are described" "$work/c"
# shellcheck disable=SC2086
grep -ohE '(`|&& |^ *)make [a-z][a-z0-9-]+' $pages | sed 's/.*make //' | sort -u |
    while read -r target; do
        grep -qE "^$target( [^=:]*)?:" "$build/Makefile" || echo "make $target: there is no such target"
    done >"$work/c"
report "make targets exist" "$work/c"

# ---- the screen ------------------------------------------------------------------------------------
{
    sed -n 's/^    {"\([a-z]*\)", "[^"]*", "[^"]*",.*/\1/p' "$src/ui/slash.c"
    sed -n 's/^    {"\([a-z]*\)", "[^"]*", run_.*/\1/p' "$src/ui/plain_orders.c"
} >"$work/slash"
{
    [ -s "$work/slash" ] || echo "no command was found in ui/"
    sed 's,^,/,' "$work/slash" | while read -r name; do
        grep -qE "\`${name}[\` ]" "$guide" || echo "$name: not described in docs/guide.md"
    done
    # shellcheck disable=SC2086,SC2016 # backquotes of Markdown
    grep -ohE '`/[a-z]+[` ]' $pages | tr -d '` /' |
        missing_from "$work/slash" "named with a slash, but no command of the chat"
} >"$work/c"
report "commands of the chat exist and are described" "$work/c"
sed -n 's/^    {ACT_[A-Z_0-9]*, "[a-z0-9-]*", "\(.*\)", .*/\1/p' "$src/ui/keymap.c" |
    sed 's/", .*//; s/, /\n/g' | grep -vE '^Alt\+[1-8]$' >"$work/keys"
{
    [ -s "$work/keys" ] || echo "no key was found in ui/keymap.c"
    while IFS= read -r key; do
        grep -qF -e "$key" "$guide" || echo "$key: not in docs/guide.md"
    done <"$work/keys"
} >"$work/c"
report "the guide names every key" "$work/c"

# ---- profiles, environment -------------------------------------------------------------------------
sed -n '/^\.SH PROFILE KEYS/,/^\.SH EXIT/s/^\\fB\([a-z_.]*\)\\fR.*/\1/p' "$work/man" >"$work/keys"
{
    [ -s "$work/keys" ] || echo "no profile key was found"
    while read -r key; do
        grep -qF "| \`$key\`" "$guide" || echo "$key: no row in docs/guide.md"
    done <"$work/keys"
} >"$work/c"
report "the guide describes every profile key" "$work/c"
grep -ohE 'getenv\("[A-Z0-9_]+"\)' "$src"/src/*.c "$src"/ui/*.c "$src"/engine/*/*.c |
    grep -oE '[A-Z0-9_]{2,}' | unnamed_in "$guide" "read by the program, not in docs/guide.md" >"$work/c"
report "the guide names every variable of the environment" "$work/c"

# ---- formats -----------------------------------------------------------------------------------------
cd "$work/scratch" || exit 99
printf '%s\n' '{"role":"user","content":"Hi"}' >messages.jsonl
k3chat --batch --chat messages.jsonl --max-tokens 20 --session docs --dump-routing --json result.json \
    >/dev/null 2>"$work/err" || cat "$work/err" >"$work/c.run"
fields() { grep -ohE '"[a-z_]+": ?' "$@" | tr -d '": '; }
{
    cat "$work/c.run" 2>/dev/null
    fields result.json | unnamed_in "$guide" "a field of the result that docs/guide.md does not name"
    fields "$XDG_DATA_HOME/k3chat/sessions/docs.jsonl" |
        unnamed_in "$formats" "a field of the transcript that docs/formats.md does not name"
} >"$work/c"
report "results and transcripts hold the fields described" "$work/c"

# ---- files and links ---------------------------------------------------------------------------------
# shellcheck disable=SC2086
grep -ohE '\b(src|ui|engine|tests|conf|docs|m4)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*]' $pages |
    grep -v NAME | sort -u | while IFS= read -r path; do
        # shellcheck disable=SC2086 # a pattern of names
        set -- "$src"/$path
        [ -e "$1" ] || echo "$path: named in README or docs, but not there"
    done >"$work/c"
report "every file named is there" "$work/c"
# Headings as the anchors that links use.
anchors()
{
    awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for page in $pages; do
    grep -oE '\]\([^)]+\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^https\?:' |
        while IFS= read -r link; do
            file=${link%%#*} anchor=
            case $link in *'#'*) anchor=${link#*#} ;; esac
            target=$page
            [ -z "$file" ] || target=$(dirname "$page")/$file
            if [ ! -e "$target" ]; then
                echo "${page#"$src"/}: link to $link, which is not there"
            elif [ -n "$anchor" ] && ! anchors "$target" | grep -qxF -e "$anchor"; then
                echo "${page#"$src"/}: link to $link, which has no such heading"
            fi
        done
done >"$work/c"
report "every link leads somewhere" "$work/c"
for marker in test chat; do
    grep -A1 -xF "<!-- $marker command -->" "$src/README.md" | grep -qxF '```sh' ||
        echo "README.md: no ${marker} command"
done >"$work/c"
report "the README has its two commands" "$work/c"

# ---- packages ----------------------------------------------------------------------------------------
# What autogen.sh installs and what the Debian package builds with. The tools that debhelper and the
# essential packages bring are named by autogen.sh alone.
sh "$src/autogen.sh" --help | sed -n 's/^packages[^:]*: //p' | tr ' ' '\n' |
    grep -vxE 'gcc|make|autoconf|automake' | sort >"$work/packages"
sed -n '/^Build-Depends:/,/^$/s/^ \([a-z0-9.+-]*\).*,$/\1/p' "$src/docs/packaging/debian/control" |
    grep -vx debhelper-compat | sort >"$work/depends"
diff "$work/packages" "$work/depends" | sed -n 's/^</only in autogen.sh:/p; s/^>/only in debian\/control:/p' \
    >"$work/c"
[ -s "$work/packages" ] || echo "autogen.sh --help names no packages" >>"$work/c"
report "the Debian package builds with what autogen.sh installs" "$work/c"
sed -n 's/^AC_INIT(\[k3chat\], \[\([^]]*\)\].*/\1/p' "$src/configure.ac" >"$work/version"
sed -n '1s/^k3chat (\(.*\)-[0-9]*) .*/\1/p' "$src/docs/packaging/debian/changelog" |
    diff "$work/version" - >"$work/c"
report "the Debian package has the version of the program" "$work/c"

# ---- completion --------------------------------------------------------------------------------------
cat >"$work/complete.bash" <<'END'
. "$1/conf/completion/k3chat"
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _k3chat; }
for option in isa io expert-policy thinking; do
    want=$(k3chat --batch --ids 1 --$option '?' 2>&1 | sed -n 's/.*: say //p' | sed 's/,//g; s/ or / /')
    have=$(_k3chat_words --$option)
    [ -n "$want" ] && [ "$have" = "$want" ] || echo "--$option: completes '$have', takes '$want'"
done
complete_line k3chat --th
[ "${COMPREPLY[*]}" = "--threads --thinking" ] || echo "--th completes to ${COMPREPLY[*]}"
complete_line k3chat bench io --f
[ "${COMPREPLY[*]}" = --file ] || echo "bench io --f completes to ${COMPREPLY[*]}"
complete_line k3chat d
[ "${COMPREPLY[*]}" = doctor ] || echo "d completes to ${COMPREPLY[*]}"
END
if command -v bash >/dev/null; then
    bash "$work/complete.bash" "$src" >"$work/c" 2>&1
    report "completion knows the program's words" "$work/c"
else
    n=$((n + 1))
    echo "ok $n # SKIP completion knows the program's words: no bash"
fi

# ---- every block says what becomes of it ---------------------------------------------------------------
for page in $pages; do
    awk -v page="${page#"$src"/}" '
        !code && /^    / && above == "" { print page ":" NR ": an indented block; fence it and name its language" }
        !code && /^ *```/ {
            code = 1; kind = $0; gsub(/[ `]/, "", kind)
            marked = above ~ /^ *<!-- (run(: ([0-9]+|chat))?|not run: .+|(chat|test) command) -->$/
            if (kind == "") print page ":" NR ": a block without a language (text, if it is none)"
            if ((kind == "sh" || kind == "console") && !marked)
                print page ":" NR ": commands that are neither run nor say why not"
            next
        }
        code && /^ *```$/ { code = 0; above = "-"; next }
        { above = $0 }' "$page"
done >"$work/c"
report "every block of commands is run, or says why not" "$work/c"
grep -n '^<!-- picture: ' "$src/README.md" "$src"/docs/*.md | while IFS=: read -r page line marker; do
    picture=${marker#*picture: }
    picture=$src/${picture% -->}
    sed -n "$((line + 1))p" "$page" | grep -qxF '```text' &&
        sed -n "$((line + 2)),\$p" "$page" | sed '/^```$/,$d' | cmp -s - "$picture" ||
        echo "${page#"$src"/}:$line: the block below is not $picture"
done >"$work/c"
report "pictures are the stored ones" "$work/c"

# ---- the README's arithmetic ---------------------------------------------------------------------------
# Bytes per token from the plan of the released model, seconds by the rates in the table's head.
sed -n '/^| profile | trunk read/,/^$/p' "$src/README.md" >"$work/expect"
sed -n 's/^| `\([a-z]*\)`.*/\1/p' "$work/expect" | while read -r profile; do
    k3chat doctor --profile "$profile" --model "$src/tests/data/released" 2>&1 |
        sed -n "s/^ *each token reads \([0-9.]*\) \(G*B\) of trunk and at most \([0-9.]*\) GB of experts.*/$profile \1 \3/p"
done | awk -v table="$work/expect" '
    BEGIN { FS = " *[|] *"; getline head <table; n = split(head, rate); FS = " " }
    { row = "| `" $1 "` | " $2 " GB | " $3 " GB |"
      for (i = 5; i < n; i++) {
          s = ($2 + $3) / rate[i]; row = row " " sprintf(s < 10 ? "%.1f" : "%.0f", s) " s |"
      }
      print row }' >"$work/computed"
tail -n +3 "$work/expect" | sed '/^$/d' | diff - "$work/computed" >"$work/c" && [ -s "$work/computed" ] ||
    echo "README.md (<) is not what k3chat doctor plans (>)" >>"$work/c"
report "what to expect is what doctor plans" "$work/c"

# ---- commands within the text ------------------------------------------------------------------------
"$build/make-checkpoint" "$HOME/kimi-k3" --preset tiny --quiet >"$work/c" 2>&1
report "a tiny checkpoint stands for the real one" "$work/c"
k3chat --batch --ids 1,2,3 --max-tokens 6 --trace experts.trace >/dev/null 2>&1
# A name alone is looked for above; measurements take minutes, and a download needs a network.
# shellcheck disable=SC2086,SC2016
grep -ohE '`k3chat [^` ]+ [^`]+`' $pages | tr -d '`' | grep -vE '^k3chat (bench|fetch) ' | sort -u |
    while IFS= read -r line; do
        line=$(echo "$line" | sed "s,--model [a-zA-Z]*,--model $HOME/kimi-k3,; s,DIR,$HOME/kimi-k3,; s,NAME,docs,
            s,FILE,experts.trace,; s,--ids-file IDS,--ids 1\,2\,3,; s, N , 4 ,")
        case $line in
            "k3chat "[a-z]* | *--batch* | *--help* | *--version*) ;;
            *) line="$line --plain" ;;
        esac
        sh -c "$line" >"$work/out" 2>&1 </dev/null || { echo "$line: status $?"; tail -n 3 "$work/out"; }
    done >"$work/c"
report "commands within the text run" "$work/c"

# ---- blocks that are marked to be run ------------------------------------------------------------------
for page in $pages; do
    awk -v stem="$work/block-$(basename "$page")" -v page="${page#"$src"/}" '
        /^ *<!-- run(: ([0-9]+|chat))? -->$/ {
            chat = /chat/; status = $0; gsub(/[^0-9]/, "", status); wanted = 1; next
        }
        wanted && /^ *```(sh|console)$/ {
            file = sprintf("%s-%04d", stem, NR); kind = $0; gsub(/[ `]/, "", kind); wanted = 0
            print page ":" NR, status + 0, kind >(file ".head")
            if (chat) print "k3chat() { ./k3chat \"$@\"; }" >(file ".sh")
            next
        }
        /^ *```$/ && file { close(file ".head"); close(file ".sh"); file = ""; next }
        file && kind == "sh" { print >(file ".sh"); next }
        file && /^\$ / { print substr($0, 3) >(file ".sh"); next }
        file { print >(file ".want"); next }
        { wanted = 0 }' "$page"
done
# The wanted lines that are not among the lines printed.
lacking()
{
    awk 'NR == FNR { got[++n] = $0; next }
         { parts = split($0, part, /\.\.\./); found = 0
           for (i = 1; i <= n && !found; i++) {
               rest = got[i]; found = substr(rest, 1, length(part[1])) == part[1]
               rest = substr(rest, length(part[1]) + 1)
               for (p = 2; p <= parts && found; p++) {
                   at = index(rest, part[p]); found = part[p] == "" || at > 0
                   if (part[p] != "") rest = substr(rest, at + length(part[p]))
               }
               if (found && rest != "" && part[parts] != "") found = 0
           }
           if (!found) print "not printed: " $0 }' "$1" "$2"
}
for head in "$work"/block-*.head; do
    block=${head%.head}
    read -r where status kind <"$head"
    sh -e "$block.sh" >"$block.out" 2>&1 </dev/null
    rc=$?
    {
        [ "$rc" = "$status" ] || { echo "ended with status $rc, not $status"; tail -n 5 "$block.out"; }
        [ "$kind" = sh ] || lacking "$block.out" "$block.want"
    } >"$work/c"
    report "$where does what it says" "$work/c"
done
echo "1..$n"
