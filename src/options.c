/* options.c - see options.h. */
#include <config.h>

#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "shown.h"

#define HELP_COLUMN 26
#define HELP_WIDTH 79

enum { OPT_HELP = 'h', OPT_VERSION = 'V', OPT_FIRST = 256 };

/* An option as it stood on the command line. */
struct given {
    const struct setting *s;
    const char *value; /* NULL for a flag */
};

/* The table as getopt_long() wants it: every option, so that one of another mode is recognised. */
static struct option *make_longopts(struct k3_error *err)
{
    struct option *o = calloc(n_settings + 3, sizeof *o);
    if (o == NULL) {
        k3_fail_memory(err, "the option table", (n_settings + 3) * sizeof *o);
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < n_settings; i++) {
        if (settings[i].option == NULL)
            continue;
        o[n].name = settings[i].option;
        o[n].has_arg = settings[i].arg == NULL     ? no_argument
                       : settings[i].arg[0] == '[' ? optional_argument
                                                   : required_argument;
        o[n++].val = OPT_FIRST + (int)i;
    }
    o[n++] = (struct option){"help", no_argument, NULL, OPT_HELP};
    o[n] = (struct option){"version", no_argument, NULL, OPT_VERSION};
    return o;
}

/* What getopt_long() stumbled over, named as typed. */
static enum k3_status refuse(int code, char **argv, struct k3_error *err)
{
    const char *word = argv[optind - 1];
    if (optopt != 0 && optopt < OPT_FIRST && strncmp(word, "--", 2) != 0)
        return k3_fail(err, K3_USAGE, "unknown option '-%c'; see k3chat --help", optopt);
    if (code == ':')
        return k3_fail(err, K3_USAGE, "option '%s' needs a value", word);
    const int length = (int)strcspn(word, "=");
    if (optopt != 0)
        return k3_fail(err, K3_USAGE, "option '%.*s' takes no value", length, word);
    return k3_fail(err, K3_USAGE, "unknown option '%.*s'; see k3chat --help", length, word);
}

static enum k3_status check_mode(const struct setting *s, unsigned modes, struct k3_error *err)
{
    if ((s->modes & modes) != 0)
        return K3_OK;
    if (s->modes == FOR_BATCH)
        return k3_fail(err, K3_USAGE, "option '--%s' is for --batch only", s->option);
    return k3_fail(err, K3_USAGE, "option '--%s' is not for this command", s->option);
}

/* What stands there besides options; only some commands take words. */
static enum k3_status take_words(int argc, char **argv, unsigned modes, struct request *r,
                                 struct k3_error *err)
{
    const size_t most = modes == FOR_FETCH ? sizeof r->words / sizeof r->words[0] : 0;
    for (; optind < argc && r->n_words < most; optind++)
        r->words[r->n_words++] = argv[optind];
    if (optind < argc)
        return k3_fail(err, K3_USAGE, "'%s' is no option; see k3chat --help", argv[optind]);
    return K3_OK;
}

/* An optional value may also stand behind a space. */
static const char *value_of(const struct setting *s, int argc, char **argv)
{
    const bool optional = s->arg != NULL && s->arg[0] == '[';
    if (optional && optarg == NULL && optind < argc && argv[optind][0] != '-')
        return argv[optind++];
    return optarg;
}

/* First pass: what is there. Values are looked at later, because the profile comes before them. */
static enum options_result collect(int argc, char **argv, const struct option *longopts,
                                   struct given *list, size_t *n, unsigned modes,
                                   struct request *r, struct k3_error *err)
{
    opterr = 0;
    optind = 0; /* GNU: starts anew, so that several command lines can be read in one process */
    int code;
    while ((code = getopt_long(argc, argv, ":hV", longopts, NULL)) != -1) {
        if (code == OPT_HELP)
            return OPTIONS_HELP;
        if (code == OPT_VERSION)
            return OPTIONS_VERSION;
        if (code < OPT_FIRST) {
            refuse(code, argv, err);
            return OPTIONS_ERROR;
        }
        const struct setting *s = &settings[code - OPT_FIRST];
        list[(*n)++] = (struct given){s, value_of(s, argc, argv)};
    }
    return take_words(argc, argv, modes, r, err) == K3_OK ? OPTIONS_RUN : OPTIONS_ERROR;
}

/* The option that is typed wins over the profile; of one given twice, the last. */
static enum k3_status apply(struct request *r, const struct given *list, size_t n,
                            struct k3_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct setting *s = list[i].s;
        if (s->take(r, list[i].value == NULL ? "" : list[i].value, err) != K3_OK)
            return k3_fail_in(err, "option '--%s'", s->option);
    }
    return K3_OK;
}

static const struct given *find_given(const struct given *list, size_t n, const char *option)
{
    for (size_t i = n; i-- > 0;)
        if (strcmp(list[i].s->option, option) == 0)
            return &list[i];
    return NULL;
}

static enum k3_status settle(struct request *r, const struct given *list, size_t n, unsigned modes,
                             struct k3_error *err)
{
    const unsigned allowed =
        find_given(list, n, "batch") != NULL || modes != FOR_BOTH ? modes : FOR_CHAT;
    for (size_t i = 0; i < n; i++) {
        const bool starts_batch = strcmp(list[i].s->option, "batch") == 0 && (modes & FOR_BATCH);
        if (!starts_batch && check_mode(list[i].s, allowed, err) != K3_OK)
            return err->status;
    }
    const struct given *profile = find_given(list, n, "profile");
    const bool has_model = find_given(list, n, "model") != NULL;
    if ((modes & (FOR_BOTH | FOR_DOCTOR)) != 0 &&
        profile_load_for(r, profile == NULL ? NULL : profile->value, has_model, err) != K3_OK)
        return err->status;
    return apply(r, list, n, err);
}

enum options_result options_parse(int argc, char **argv, unsigned modes, struct request *r,
                                  struct k3_error *err)
{
    struct option *longopts = make_longopts(err);
    struct given *list = calloc((size_t)argc + 1, sizeof *list);
    size_t n = 0;
    enum options_result result = OPTIONS_ERROR;
    request_init(r);
    if (list == NULL)
        k3_fail_memory(err, "the command line", ((size_t)argc + 1) * sizeof *list);
    else if (longopts != NULL)
        result = collect(argc, argv, longopts, list, &n, modes, r, err);
    if (result == OPTIONS_RUN && settle(r, list, n, modes, err) != K3_OK)
        result = OPTIONS_ERROR;
    free(list);
    free(longopts);
    return result;
}

/* ---- help -------------------------------------------------------------------------------- */

/* The text from column HELP_COLUMN on, broken at spaces. */
static void print_wrapped(FILE *out, const char *text)
{
    size_t room = HELP_WIDTH - HELP_COLUMN;
    while (strlen(text) > room) {
        size_t cut = room;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            break;
        fprintf(out, "%.*s\n%*s", (int)cut, text, HELP_COLUMN, "");
        text += cut + 1;
    }
    fprintf(out, "%s\n", text);
}

static void print_row(FILE *out, const char *left, const char *text)
{
    const int used = fprintf(out, "  %s", left);
    if (used + 2 > HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - used, "");
    print_wrapped(out, text);
}

void options_print(FILE *out, unsigned modes, unsigned skip)
{
    for (size_t i = 0; i < n_settings; i++) {
        const struct setting *s = &settings[i];
        if (s->option == NULL || (s->modes & modes) == 0 || (s->modes & skip) != 0)
            continue;
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", s->option, s->arg == NULL ? "" : " ",
                 s->arg == NULL ? "" : s->arg);
        print_row(out, left, s->help);
    }
}

void help_print(FILE *out)
{
    fputs("Usage: k3chat [options]            full-screen chat\n"
          "       k3chat --batch [options]    one run without a screen\n",
          out);
    for (const struct command *c = commands; c->name != NULL; c++)
        fprintf(out, "       k3chat %s\n", c->usage);
    fputs("\nChats with Kimi K3 on this computer, reading its weights from disk as it goes.\n"
          "Without --model it opens a built-in demo model, which knows only this program.\n"
          "\nOptions for the chat and for --batch:\n",
          out);
    options_print(out, FOR_CHAT, 0);
    print_row(out, "--help", "this text");
    print_row(out, "--version", "the version");
    fputs("\nOptions for --batch only (exactly one prompt of --ids to --continue):\n", out);
    options_print(out, FOR_BATCH, FOR_CHAT);
    fputs("\nCommands (k3chat COMMAND --help tells more):\n", out);
    for (const struct command *c = commands; c->name != NULL; c++)
        print_row(out, c->name, c->help);
    fputs("\nExit status: 0 done, 1 failed, 2 usage or configuration not understood, 4 the\n"
          "output is unsound, 130 interrupted.\n",
          out);
}

void version_print(FILE *out)
{
    fprintf(out, "k3chat %s\n", PACKAGE_VERSION);
}

const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

int report_error(const struct k3_error *err)
{
    fputs("k3chat: ", stderr);
    shown_put(stderr, err->message, strlen(err->message)); /* it may quote a file */
    putc('\n', stderr);
    return (int)err->status;
}
