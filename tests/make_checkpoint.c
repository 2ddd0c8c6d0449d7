/* make_checkpoint.c - writes a synthetic checkpoint from the command line, for tests and benches. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/demo/synth.h"

static void usage(FILE *f)
{
    fputs("Usage: make-checkpoint OUT [--preset NAME] [--FIELD N ...] [--quiet]\n"
          "Writes a checkpoint of random weights in the released layout into the new folder OUT.\n"
          "\nPresets (default tiny):\n", f);
    for (size_t i = 0; k3_synth_preset_names[i]; i++)
        fprintf(f, "  %-6s %s\n", k3_synth_preset_names[i],
                k3_synth_preset_about(k3_synth_preset_names[i]));
    fputs("\nFields, each a whole number that replaces the preset's:\n ", f);
    for (unsigned i = 0; k3_synth_field_name(i); i++)
        fprintf(f, " --%s%s", k3_synth_field_name(i), i % 7 == 6 ? "\n " : "");
    fputs("\n(config: 0 nested as released, 1 flat, 2 hoisted; scatter: number of shards; holes: 1\n"
          "leaves the weights zero and takes no disk space for them)\n", f);
}

static int bad_usage(const char *what, const char *arg)
{
    fprintf(stderr, "make-checkpoint: %s '%s' (see --help)\n", what, arg);
    return K3_USAGE;
}

static bool parse_u32(const char *text, uint32_t *out)
{
    char *end;
    errno = 0;
    const unsigned long v = strtoul(text, &end, 10);
    if (errno || end == text || *end || v > UINT32_MAX || text[0] == '-')
        return false;
    *out = (uint32_t)v;
    return true;
}

static void show(void *ud, const char *what, uint64_t done, uint64_t total)
{
    uint64_t *next = ud;
    if (done < *next)
        return;
    *next = done + total / 20;
    fprintf(stderr, "%s: %.2f of %.2f GB\n", what, (double)done / 1e9, (double)total / 1e9);
}

/* The preset comes first, wherever it stands, so that fields replace its values. */
static bool find_preset(int argc, char **argv, struct k3_synth *s)
{
    const char *name = "tiny";
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--preset") == 0)
            name = argv[i + 1];
    return k3_synth_preset(name, s) || (bad_usage("no such preset", name), false);
}

int main(int argc, char **argv)
{
    struct k3_synth s;
    const char *out = NULL;
    bool quiet = false;
    if (!find_preset(argc, argv, &s))
        return K3_USAGE;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0) {
            usage(stdout);
            return 0;
        }
        if (strcmp(arg, "--quiet") == 0) {
            quiet = true;
            continue;
        }
        if (strncmp(arg, "--", 2) != 0) {
            if (out)
                return bad_usage("one folder only, not also", arg);
            out = arg;
            continue;
        }
        if (i + 1 == argc)
            return bad_usage("a value is missing after", arg);
        i++;
        if (strcmp(arg, "--preset") == 0)
            continue;
        uint32_t *field = k3_synth_field(&s, arg + 2);
        if (!field)
            return bad_usage("no such option", arg);
        if (!parse_u32(argv[i], field))
            return bad_usage("not a whole number:", argv[i]);
    }
    if (!out) {
        usage(stderr);
        return K3_USAGE;
    }
    uint64_t next = 0;
    struct k3_error err;
    const enum k3_status st = k3_synth_write(&s, out, quiet ? NULL : show, &next, &err);
    if (st != K3_OK)
        fprintf(stderr, "make-checkpoint: %s\n", err.message);
    return (int)st;
}
