/* cmd_sessions.c - see cmd_sessions.h. */
#include <config.h>

#include "cmd_sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "saved.h"
#include "sessions.h"
#include "shown.h"
#include "size.h"

#define TITLE_COLUMNS 40
#define COLUMNS_BEFORE_TITLE 70 /* of the list, and the mark of what is cut */

/* ---- the list ---------------------------------------------------------------------------- */

static void print_states(const char *name)
{
    struct states_usage u;
    struct k3_error err;
    char size[32];
    char *path = transcript_file(name, &err);
    if (path != NULL && states_measure(path, &u, &err) == K3_OK && u.files > 0)
        printf("  %9s", size_format(size, sizeof size, u.bytes));
    else
        printf("  %9s", "-");
    free(path);
}

/* Columns for the last column: what the terminal has left, so that no row wraps. */
static int title_columns(void)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
        return TITLE_COLUMNS;
    const int left = w.ws_col - COLUMNS_BEFORE_TITLE;
    return left < 10 ? 10 : left > TITLE_COLUMNS ? TITLE_COLUMNS : left;
}

static int list(int argc, char **argv)
{
    struct saved_session *rows;
    size_t n;
    struct k3_error err = {0};
    const int columns = title_columns();
    (void)argc;
    (void)argv;
    if (saved_list(&rows, &n, &err) != K3_OK)
        return report_error(&err);
    if (n > 0)
        printf("%-16s  %5s  %9s  %9s  %-20s  %s\n", "last use", "msgs", "size", "states", "name",
               "begins with");
    for (size_t i = 0; i < n; i++) {
        struct transcript_contents c;
        char when[32] = "?", size[32], title[TITLE_COLUMNS * 4 + 8];
        struct tm tm;
        const time_t used = (time_t)rows[i].used;
        if (localtime_r(&used, &tm) != NULL)
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        const bool ok = sessions_load(rows[i].name, &c, &err) == K3_OK;
        if (ok)
            printf("%-16s  %5zu", when, c.conversation.n);
        else
            printf("%-16s  %5s", when, "?");
        printf("  %9s", size_format(size, sizeof size, rows[i].bytes));
        print_states(rows[i].name);
        printf("  %-20s  %s\n", rows[i].name,
               ok ? sessions_title(&c.conversation, columns, title, sizeof title)
                  : "(cannot be read: k3chat sessions show tells why)");
        if (ok)
            conversation_free(&c.conversation);
    }
    free(rows);
    return 0;
}

/* ---- show and export --------------------------------------------------------------------- */

/* By way of memory, because a terminal is shown what others are given. */
static enum k3_status put_conversation(const struct conversation *c, const char *name,
                                       const char *format, struct k3_error *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL)
        return k3_fail_memory(err, "the conversation", 0);
    enum k3_status status = sessions_export(c, name, format, f, err);
    if (fclose(f) != 0 && status == K3_OK)
        status = k3_fail_memory(err, "the conversation", len);
    if (status == K3_OK)
        shown_put(stdout, text, len);
    free(text);
    return status;
}

static int put_session(const char *name, const char *format)
{
    struct transcript_contents c;
    struct k3_error err = {0};
    if (sessions_load(name, &c, &err) != K3_OK)
        return report_error(&err);
    enum k3_status status = put_conversation(&c.conversation, name, format, &err);
    conversation_free(&c.conversation);
    if (status == K3_OK && (fflush(stdout) != 0 || ferror(stdout) != 0))
        status = k3_fail(&err, K3_FAILED, "stdout cannot be written: %s", strerror(errno));
    return status == K3_OK ? 0 : report_error(&err);
}

static int usage_error(const char *text)
{
    struct k3_error err;
    k3_fail(&err, K3_USAGE, "%s; see k3chat sessions --help", text);
    return report_error(&err);
}

static int show(int argc, char **argv)
{
    return argc == 2 ? put_session(argv[1], "txt") : usage_error("show takes one session");
}

static int export_session(int argc, char **argv)
{
    const char *name = NULL, *format = "md";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--format") == 0 && i + 1 < argc)
            format = argv[++i];
        else if (strncmp(argv[i], "--format=", 9) == 0)
            format = argv[i] + 9;
        else if (argv[i][0] == '-' || name != NULL)
            return usage_error("export takes one session and --format md, jsonl or txt");
        else
            name = argv[i];
    }
    return name == NULL ? usage_error("export takes one session") : put_session(name, format);
}

/* ---- rename and delete ------------------------------------------------------------------- */

static int rename_session(int argc, char **argv)
{
    struct k3_error err = {0};
    if (argc != 3)
        return usage_error("rename takes a session and its new name");
    return saved_rename(argv[1], argv[2], &err) == K3_OK ? 0 : report_error(&err);
}

static bool confirmed(const char *name, const struct conversation *c)
{
    char title[TITLE_COLUMNS * 4 + 8], answer[16] = "";
    if (isatty(STDIN_FILENO) == 0)
        return false;
    fprintf(stderr, "delete '%s', %zu messages (%s)? [y/N] ", name, c->n,
            sessions_title(c, TITLE_COLUMNS, title, sizeof title));
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum k3_status ask(const char *name, struct k3_error *err)
{
    struct transcript_contents c;
    if (sessions_load(name, &c, err) != K3_OK)
        return err->status;
    const bool yes = confirmed(name, &c.conversation);
    conversation_free(&c.conversation);
    return yes ? K3_OK
               : k3_fail(err, K3_USAGE, "nothing was deleted (--yes asks no question)");
}

static int delete_session(int argc, char **argv)
{
    struct k3_error err = {0};
    const bool yes = argc == 3 && strcmp(argv[1], "--yes") == 0;
    const bool yes_behind = argc == 3 && strcmp(argv[2], "--yes") == 0;
    if (argc != 2 && !yes && !yes_behind)
        return usage_error("delete takes a session, and --yes to ask no question");
    const char *name = yes ? argv[2] : argv[1];
    if (!yes && !yes_behind && ask(name, &err) != K3_OK)
        return report_error(&err);
    return saved_delete(name, &err) == K3_OK ? 0 : report_error(&err);
}

/* ---- search ------------------------------------------------------------------------------ */

struct search {
    const char *name;
    size_t found;
};

static void print_hit(void *ud, const struct saved_hit *hit)
{
    struct search *s = ud;
    printf("%s: %zu %s: ", s->name, hit->message, hit->role);
    shown_put(stdout, hit->excerpt, strlen(hit->excerpt));
    putchar('\n');
    s->found++;
}

static int search(int argc, char **argv)
{
    struct saved_session *rows;
    struct search s = {0};
    size_t n;
    struct k3_error err = {0};
    if (argc != 2 || argv[1][0] == '\0')
        return usage_error("search takes one text");
    if (saved_list(&rows, &n, &err) != K3_OK)
        return report_error(&err);
    for (size_t i = 0; i < n; i++) {
        s.name = rows[i].name;
        if (saved_search(s.name, argv[1], print_hit, &s, &err) != K3_OK)
            report_error(&err);
    }
    free(rows);
    return s.found > 0 ? 0 : 1;
}

/* ---- check and import -------------------------------------------------------------------- */

static void on_notice(void *ud, const char *text)
{
    (void)ud;
    fprintf(stderr, "k3chat: %s\n", text);
}

static void tell_checked(const struct sessions_checked *done)
{
    if (done->answers == 0)
        puts("there is no answer that could be compared");
    else
        printf("%u %s with %u tokens: what a fresh run gives\n", (unsigned)done->answers,
               done->answers == 1 ? "answer" : "answers", (unsigned)done->tokens);
    if (done->foreign > 0)
        printf("%u %s not compared: imported, or made by another model or version\n",
               (unsigned)done->foreign, done->foreign == 1 ? "answer was" : "answers were");
    if (done->from_state > 0)
        printf("the saved state of %u positions gives the same bits\n",
               (unsigned)done->from_state);
    else
        puts("no saved state fits: there was none to compare with");
}

static enum k3_status check_loaded(const struct request *r, const char *name,
                                   const struct conversation *c, struct k3_error *err)
{
    struct runtime rt = {0};
    struct sessions_checked done = {0};
    const struct runtime_listener listen = {.notice = on_notice};
    const struct runtime_needs needs = {.tokenizer = true};
    const struct states_limits none = {.keep = 0};
    enum k3_status status = runtime_load(&rt, &r->run, &needs, &listen, err);
    char *path = status == K3_OK ? transcript_file(name, err) : NULL;
    struct states *s = path == NULL ? NULL : states_open(path, &none, on_notice, NULL, err);
    if (status == K3_OK)
        status = s == NULL ? err->status
                           : sessions_check(&rt, c, s, r->run.thinking, stdout, &done, err);
    if (status == K3_OK)
        tell_checked(&done);
    states_close(s);
    free(path);
    runtime_close(&rt);
    return status;
}

static int check(int argc, char **argv)
{
    struct request r;
    struct k3_error err = {0};
    struct transcript_contents c;
    if (argc < 2 || argv[1][0] == '-')
        return usage_error("check takes a session, then the options of a chat");
    enum k3_status status = K3_OK;
    if (options_parse(argc - 1, argv + 1, FOR_CHAT, &r, &err) != OPTIONS_RUN)
        status = err.status == K3_OK ? k3_fail(&err, K3_USAGE, "check takes a session, then the "
                                               "options of a chat")
                                     : err.status;
    if (status == K3_OK)
        status = sessions_load(argv[1], &c, &err);
    if (status == K3_OK) {
        status = check_loaded(&r, argv[1], &c.conversation, &err);
        conversation_free(&c.conversation);
    }
    request_free(&r);
    return status == K3_OK ? 0 : report_error(&err);
}

static int import(int argc, char **argv)
{
    struct k3_error err = {0};
    const char *file = NULL, *name = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--session") == 0 && i + 1 < argc)
            name = argv[++i];
        else if (strncmp(argv[i], "--session=", 10) == 0)
            name = argv[i] + 10;
        else if ((argv[i][0] == '-' && argv[i][1] != '\0') || file != NULL)
            return usage_error("import takes one file and --session NAME");
        else
            file = argv[i];
    }
    if (file == NULL)
        return usage_error("import takes one file");
    return sessions_import(file, name, &err) == K3_OK ? 0 : report_error(&err);
}

/* ---- the table --------------------------------------------------------------------------- */

static const struct {
    const char *name, *usage, *help;
    int (*run)(int argc, char **argv);
} actions[] = {
    {"list", "list", "all sessions, the one used last first", list},
    {"show", "show NAME", "the conversation as text", show},
    {"export", "export NAME [--format md|jsonl|txt]",
     "to stdout: for people (md, txt), for other programs (jsonl)", export_session},
    {"rename", "rename NAME NEW", "its saved states move with it", rename_session},
    {"delete", "delete NAME [--yes]", "the transcript and its saved states", delete_session},
    {"search", "search TEXT", "where it stands, in either case of letters", search},
    {"check", "check NAME [--model DIR ...]",
     "generates every answer again, and compares tokens and bits", check},
    {"import", "import FILE [--session NAME]", "messages of another program become a session",
     import},
};

static void print_help(void)
{
    puts("Usage: k3chat sessions ACTION\n\nWhat to do with the chats of "
         "$XDG_DATA_HOME/k3chat/sessions.\n");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        printf("  %-38s %s\n", actions[i].usage, actions[i].help);
    puts("\nA check computes as much as the chat did; it takes the options of a chat, and should be\n"
         "given the same model.");
}

int cmd_sessions(int argc, char **argv)
{
    struct k3_error err;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help();
        return 0;
    }
    if (argc < 2)
        return usage_error("sessions needs to be told what to do");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(argv[1], actions[i].name) == 0)
            return actions[i].run(argc - 1, argv + 1);
    k3_fail(&err, K3_USAGE, "sessions: unknown action '%s'; see k3chat sessions --help", argv[1]);
    return report_error(&err);
}
