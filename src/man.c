/* man.c - see man.h. Options, profile keys and commands come from their tables; what they do not
 * say (files, environment, an example) stands here. */
#include <config.h>

#include "man.h"

#include "options.h"

/* Text as roff takes it: hyphens stay what they are, and no line is taken for a request. */
static void put_text(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else
            putc(*text, out);
    }
}

static void put_section(FILE *out, const char *name)
{
    fprintf(out, ".SH %s\n", name);
}

static void put_paragraph(FILE *out, const char *text)
{
    fputs(".PP\n", out);
    put_text(out, text);
    putc('\n', out);
}

/* A term in bold, what goes with it in italics, and the text below them. */
static void put_item(FILE *out, const char *dashes, const char *term, const char *arg,
                     const char *text)
{
    fputs(".TP\n\\fB", out);
    put_text(out, dashes);
    put_text(out, term);
    fputs("\\fR", out);
    if (arg != NULL) {
        fputs(" \\fI", out);
        put_text(out, arg);
        fputs("\\fR", out);
    }
    putc('\n', out);
    put_text(out, text);
    putc('\n', out);
}

static void put_options(FILE *out, unsigned modes, unsigned skip)
{
    for (size_t i = 0; i < n_settings; i++) {
        const struct setting *s = &settings[i];
        if (s->option != NULL && (s->modes & modes) != 0 && (s->modes & skip) == 0)
            put_item(out, "--", s->option, s->arg, s->help);
    }
}

static void put_synopsis_line(FILE *out, const char *rest)
{
    fputs(".B k3chat\n", out);
    put_text(out, rest);
    putc('\n', out);
}

static void put_synopsis(FILE *out)
{
    put_section(out, "SYNOPSIS");
    put_synopsis_line(out, "[options]");
    fputs(".br\n", out);
    put_synopsis_line(out, "--batch [options]");
    for (const struct command *c = commands; c->name != NULL; c++) {
        fputs(".br\n", out);
        put_synopsis_line(out, c->usage);
    }
}

static void put_commands(FILE *out)
{
    put_section(out, "COMMANDS");
    put_paragraph(out, "Each command tells its options with --help.");
    for (const struct command *c = commands; c->name != NULL; c++)
        put_item(out, "", c->name, NULL, c->help);
}

static void put_keys(FILE *out)
{
    put_section(out, "PROFILE KEYS");
    put_paragraph(out, "A profile is a YAML file. Every key is optional; an unknown key, a wrong "
                       "type or a bad value is an error with file, line and column. An option on "
                       "the command line wins over the profile.");
    for (size_t i = 0; i < n_settings; i++)
        if (settings[i].key != NULL)
            put_item(out, "", settings[i].key, settings[i].arg, settings[i].help);
    put_paragraph(out, "A SIZE is a number of bytes or a number with B, kB, MB, GB, TB (powers of "
                       "1000) or KiB, MiB, GiB, TiB (powers of 1024).");
}

struct item {
    const char *term, *text;
};

static void put_items(FILE *out, const char *section, const struct item *items, size_t n)
{
    put_section(out, section);
    for (size_t i = 0; i < n; i++)
        put_item(out, "", items[i].term, NULL, items[i].text);
}

static const struct item exits[] = {
    {"0", "done"},
    {"1", "it failed: reading or writing, memory, a tensor missing or wrong"},
    {"2", "the usage, a profile or the model's configuration was not understood"},
    {"4", "the run ended but its output is unsound: data could not be read intact"},
    {"130", "interrupted"},
};

static const struct item files[] = {
    {"PREFIX/share/k3chat/profiles/NAME.yaml", "installed profiles (PREFIX is /usr/local unless "
                                               "configure was told another)"},
    {"$XDG_CONFIG_HOME/k3chat/NAME.yaml",
     "your own (~/.config/k3chat); default.yaml is read when no --profile is given"},
    {"$XDG_DATA_HOME/k3chat/sessions/NAME.jsonl", "transcripts (~/.local/share/k3chat/sessions)"},
    {"FOLDER/.k3chat-files, FOLDER/SHA256SUMS",
     "beside a checkpoint that was fetched or verified: what is known of its files, and their sums"},
    {"$XDG_CACHE_HOME/k3chat/demo-*", "the demo model (~/.cache/k3chat/demo-*); unpacked when needed"},
};

static const struct item variables[] = {
    {"XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME, HOME", "where the files above are"},
    {"K3CHAT_CONF", "one more folder that is searched for profiles"},
    {"K3CHAT_TOKEN, HF_TOKEN, HF_ENDPOINT",
     "for fetch: a token for the server of the source, one for repositories only, and the server "
     "of repositories"},
    {"https_proxy, no_proxy", "for fetch, as libcurl takes them"},
    {"VISUAL, EDITOR", "the editor for writing a message outside the program"},
    {"TMPDIR", "where the message lies meanwhile, and the results of bench runs"},
    {"TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG", "the terminal, no colours, the character encoding"},
    {"OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME",
     "how compute threads wait. When none is set, the program sets the first two so that waiting "
     "threads block, and starts itself once more."},
};

#define PUT_ITEMS(out, section, items) put_items(out, section, items, sizeof(items) / sizeof *(items))

static void put_examples(FILE *out)
{
    static const struct item examples[] = {
        {"k3chat", "the demo model, to see the program"},
        {"k3chat fetch OWNER/NAME ~/kimi-k3", "downloads a checkpoint, or what is missing of it"},
        {"k3chat doctor --model ~/kimi-k3", "what this machine can do with that checkpoint"},
        {"k3chat --model ~/kimi-k3 --profile laptop --session night", "a chat that can be resumed"},
        {"k3chat --batch --prompt \"Hello\" --max-tokens 8 --json -", "one run, with its figures"},
    };
    PUT_ITEMS(out, "EXAMPLES", examples);
}

void man_print(FILE *out)
{
    fputs(".\\\" Made by k3chat --print-man (make update-man); not to be edited.\n", out);
    fprintf(out, ".TH K3CHAT 1 \"\" \"k3chat %s\" \"User Commands\"\n", PACKAGE_VERSION);
    put_section(out, "NAME");
    fputs("k3chat \\- chat with Kimi K3 on this computer, streaming its weights from disk\n", out);
    put_synopsis(out);
    put_section(out, "DESCRIPTION");
    put_paragraph(out, "k3chat runs the mixture-of-experts model Kimi K3 on one computer, within "
                       "the memory that --budget names, by reading the weights from disk as it "
                       "goes. Without --batch it opens a full-screen chat; F1 shows its keys and "
                       "commands. Without --model it opens a built-in demo model, which knows only "
                       "this program.");
    put_section(out, "OPTIONS");
    put_options(out, FOR_CHAT, 0);
    put_item(out, "--", "help", NULL, "the options and commands");
    put_item(out, "--", "version", NULL, "the version");
    put_section(out, "BATCH OPTIONS");
    put_paragraph(out, "Exactly one prompt, of --ids to --continue, belongs to --batch. The answer goes "
                       "to stdout, everything else to stderr.");
    put_options(out, FOR_BATCH, FOR_CHAT);
    put_section(out, "DOCTOR OPTIONS");
    put_paragraph(out, "Besides those of the chat that say how a model is run:");
    put_options(out, FOR_DOCTOR, FOR_BOTH);
    put_commands(out);
    put_section(out, "FETCH AND VERIFY OPTIONS");
    put_paragraph(out, "Of fetch, which downloads the checkpoint that SOURCE (a repository, "
                       "OWNER/NAME, or the address of a folder) has into FOLDER, goes on where an "
                       "earlier run was cut off, and fetches only what is missing or wrong:");
    put_options(out, FOR_FETCH, 0);
    put_paragraph(out, "Of verify, besides --model:");
    put_options(out, FOR_VERIFY, FOR_CHAT);
    put_keys(out);
    PUT_ITEMS(out, "EXIT STATUS", exits);
    PUT_ITEMS(out, "FILES", files);
    PUT_ITEMS(out, "ENVIRONMENT", variables);
    put_examples(out);
    put_section(out, "SEE ALSO");
    put_paragraph(out, "The user guide, docs/guide.md, and the file formats, docs/formats.md, in "
                       "the source.");
}
