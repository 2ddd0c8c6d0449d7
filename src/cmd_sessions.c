/* cmd_sessions.c - see cmd_sessions.h. */
#include <config.h>

#include "cmd_sessions.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utf8proc.h>

#include "options.h"
#include "paths.h"
#include "recorder.h"
#include "sessions.h"
#include "size.h"

#define TITLE_COLUMNS 40

enum k3_status sessions_load(const char *name, struct transcript_contents *out,
                             struct k3_error *err)
{
    char *path = transcript_file(name, err);
    size_t len = 0;
    if (path == NULL)
        return err->status;
    enum k3_status status = K3_OK;
    if (access(path, F_OK) != 0)
        status = k3_fail(err, K3_USAGE, "there is no session '%s' (%s)", name, path);
    char *text = status == K3_OK ? path_read_file(path, SIZE_MAX / 4, &len, err) : NULL;
    if (text != NULL)
        status = transcript_parse(text, len, path, out, err);
    else if (status == K3_OK)
        status = err->status;
    free(text);
    free(path);
    return status;
}

char *sessions_title(const struct conversation *c, int columns, char *buf, size_t cap)
{
    size_t len = 0, n = 0;
    int used = 0;
    const char *text = "";
    for (size_t i = 0; i < c->n && len == 0; i++)
        if (strcmp(message_role(&c->v[i]), "user") == 0)
            text = message_text(&c->v[i], "content", &len);
    for (size_t at = 0; at < len;) {
        utf8proc_int32_t ch = 0;
        const utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                    (utf8proc_ssize_t)(len - at), &ch);
        const bool plain = k > 0 && ch >= 0x20 && ch != 0x7f && !(ch >= 0x80 && ch < 0xa0);
        const int width = plain ? utf8proc_charwidth(ch) : 1;
        const size_t bytes = plain ? (size_t)k : 1;
        if (used + width > columns || n + bytes + 4 > cap) {
            n += (size_t)snprintf(buf + n, cap - n, "%s", "\xe2\x80\xa6");
            break;
        }
        if (plain)
            memcpy(buf + n, text + at, bytes);
        else
            buf[n] = ' ';
        n += bytes;
        used += width;
        at += k > 0 ? (size_t)k : 1;
    }
    buf[n] = '\0';
    return buf;
}

/* ---- the list ---------------------------------------------------------------------------- */

struct row {
    char *name;
    time_t used;
    uint64_t bytes;
};

static int latest_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->used != y->used)
        return x->used < y->used ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void free_rows(struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(rows[i].name);
    free(rows);
}

static enum k3_status add_row(struct row **rows, size_t *n, const char *file, const struct stat *st,
                              struct k3_error *err)
{
    struct row *v = realloc(*rows, (*n + 1) * sizeof *v);
    if (v == NULL)
        return k3_fail_memory(err, "the list of sessions", 0);
    *rows = v;
    v[*n] = (struct row){path_format(err, "%.*s", (int)strlen(file) - 6, file), st->st_mtime,
                         (uint64_t)st->st_size};
    if (v[*n].name == NULL)
        return err->status;
    (*n)++;
    return K3_OK;
}

/* Every session, the one used last first. */
static enum k3_status find_all(struct row **rows, size_t *n, struct k3_error *err)
{
    *rows = NULL;
    *n = 0;
    char *dir = transcript_folder(err);
    if (dir == NULL)
        return err->status;
    DIR *d = opendir(dir);
    enum k3_status status = K3_OK;
    if (d == NULL && errno != ENOENT)
        status = k3_fail(err, K3_FAILED, "%s: %s", dir, strerror(errno));
    free(dir);
    for (const struct dirent *e; status == K3_OK && d != NULL && (e = readdir(d)) != NULL;) {
        struct stat st;
        const size_t len = strlen(e->d_name);
        if (e->d_name[0] != '.' && len > 6 && strcmp(e->d_name + len - 6, ".jsonl") == 0 &&
            fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            status = add_row(rows, n, e->d_name, &st, err);
    }
    if (d != NULL)
        closedir(d);
    if (status != K3_OK) {
        free_rows(*rows, *n);
        *rows = NULL;
        *n = 0;
    } else if (*n > 1) {
        qsort(*rows, *n, sizeof **rows, latest_first);
    }
    return status;
}

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

static int list(int argc, char **argv)
{
    struct row *rows;
    size_t n;
    struct k3_error err = {0};
    (void)argc;
    (void)argv;
    if (find_all(&rows, &n, &err) != K3_OK)
        return report_error(&err);
    if (n > 0)
        printf("%-16s  %5s  %9s  %9s  %-20s  %s\n", "last use", "msgs", "size", "states", "name",
               "begins with");
    for (size_t i = 0; i < n; i++) {
        struct transcript_contents c;
        char when[32] = "?", size[32], title[TITLE_COLUMNS * 4 + 8];
        struct tm tm;
        if (localtime_r(&rows[i].used, &tm) != NULL)
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        const bool ok = sessions_load(rows[i].name, &c, &err) == K3_OK;
        if (ok)
            printf("%-16s  %5zu", when, c.conversation.n);
        else
            printf("%-16s  %5s", when, "?");
        printf("  %9s", size_format(size, sizeof size, rows[i].bytes));
        print_states(rows[i].name);
        printf("  %-20s  %s\n", rows[i].name,
               ok ? sessions_title(&c.conversation, TITLE_COLUMNS, title, sizeof title)
                  : "(cannot be read: k3chat sessions show tells why)");
        if (ok)
            conversation_free(&c.conversation);
    }
    free_rows(rows, n);
    return 0;
}

/* ---- show and export --------------------------------------------------------------------- */

static int put_session(const char *name, const char *format)
{
    struct transcript_contents c;
    struct k3_error err = {0};
    if (sessions_load(name, &c, &err) != K3_OK)
        return report_error(&err);
    enum k3_status status = sessions_export(&c.conversation, name, format, stdout, &err);
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

/* The transcript, opened and locked, so that no chat has it. */
static struct transcript *open_alone(const char *name, struct conversation *c, struct k3_error *err)
{
    char *path = transcript_file(name, err), *note = NULL;
    if (path == NULL)
        return NULL;
    struct transcript *t = NULL;
    if (access(path, F_OK) != 0)
        k3_fail(err, K3_USAGE, "there is no session '%s' (%s)", name, path);
    else
        t = transcript_open(name, c, &note, err);
    free(note);
    free(path);
    return t;
}

/* link() fails when the new name is taken; rename() would not. */
static enum k3_status move_file(const char *from, const char *to, struct k3_error *err)
{
    if (link(from, to) != 0)
        return k3_fail(err, errno == EEXIST ? K3_USAGE : K3_FAILED, "%s: %s", to, strerror(errno));
    if (unlink(from) != 0)
        return k3_fail(err, K3_FAILED, "%s: %s", from, strerror(errno));
    return K3_OK;
}

static enum k3_status rename_open(struct transcript *t, const char *old_name, const char *new_name,
                                  const char *to, struct k3_error *err)
{
    if (move_file(transcript_path(t), to, err) != K3_OK ||
        states_rename(transcript_path(t), to, err) != K3_OK)
        return err->status;
    json_t *rec = json_pack("{s:s, s:s, s:s, s:I}", "type", "rename", "from", old_name, "to",
                            new_name, "time", (json_int_t)time(NULL));
    if (rec == NULL)
        return k3_fail_memory(err, "a record", 0);
    const enum k3_status status = transcript_append(t, rec, true, err);
    json_decref(rec);
    return status;
}

static int rename_session(int argc, char **argv)
{
    struct k3_error err = {0};
    struct conversation c = {0};
    if (argc != 3)
        return usage_error("rename takes a session and its new name");
    char *to = transcript_file(argv[2], &err);
    struct transcript *t = to == NULL ? NULL : open_alone(argv[1], &c, &err);
    enum k3_status status = t == NULL ? err.status
                                      : rename_open(t, argv[1], argv[2], to, &err);
    transcript_close(t);
    conversation_free(&c);
    free(to);
    return status == K3_OK ? 0 : report_error(&err);
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

static enum k3_status remove_open(struct transcript *t, struct k3_error *err)
{
    char *torn = path_format(err, "%s.torn", transcript_path(t));
    if (torn == NULL || states_remove(transcript_path(t), err) != K3_OK) {
        free(torn);
        return err->status;
    }
    unlink(torn);
    free(torn);
    if (unlink(transcript_path(t)) != 0)
        return k3_fail(err, K3_FAILED, "%s: %s", transcript_path(t), strerror(errno));
    return K3_OK;
}

static int delete_session(int argc, char **argv)
{
    struct k3_error err = {0};
    struct conversation c = {0};
    const bool yes = argc == 3 && strcmp(argv[1], "--yes") == 0;
    const bool yes_behind = argc == 3 && strcmp(argv[2], "--yes") == 0;
    if (argc != 2 && !yes && !yes_behind)
        return usage_error("delete takes a session, and --yes to ask no question");
    const char *name = yes ? argv[2] : argv[1];
    struct transcript *t = open_alone(name, &c, &err);
    enum k3_status status = t == NULL ? err.status : K3_OK;
    if (status == K3_OK && !yes && !yes_behind && !confirmed(name, &c))
        status = k3_fail(&err, K3_USAGE, "nothing was deleted (--yes asks no question)");
    if (status == K3_OK)
        status = remove_open(t, &err);
    transcript_close(t);
    conversation_free(&c);
    return status == K3_OK ? 0 : report_error(&err);
}

/* ---- search ------------------------------------------------------------------------------ */

/* Length of `what` at text when it stands there, upper and lower case being the same; 0 = no. */
static size_t match(const char *text, size_t len, const char *what)
{
    size_t at = 0;
    const size_t n = strlen(what);
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t a = 0, b = 0;
        const utf8proc_ssize_t ka = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                     (utf8proc_ssize_t)(len - at), &a);
        const utf8proc_ssize_t kb = utf8proc_iterate((const utf8proc_uint8_t *)what + i,
                                                     (utf8proc_ssize_t)(n - i), &b);
        if (ka <= 0 || kb <= 0 || utf8proc_tolower(a) != utf8proc_tolower(b))
            return 0;
        at += (size_t)ka;
        i += (size_t)kb;
    }
    return at;
}

/* Some text around a place, on one line. */
static void print_around(const char *text, size_t len, size_t at)
{
    size_t from = at > 30 ? at - 30 : 0, to = at + 60 < len ? at + 60 : len;
    while (from > 0 && ((unsigned char)text[from] & 0xC0) == 0x80)
        from--;
    while (to < len && ((unsigned char)text[to] & 0xC0) == 0x80)
        to++;
    for (size_t i = from; i < to; i++)
        putchar((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i]);
    putchar('\n');
}

static bool search_field(const char *name, size_t number, const struct message *m,
                         const char *field, const char *what)
{
    size_t len = 0;
    const char *text = message_text(m, field, &len);
    for (size_t at = 0; at < len; at++) {
        if (((unsigned char)text[at] & 0xC0) == 0x80 || match(text + at, len - at, what) == 0)
            continue;
        printf("%s: %zu %s: ", name, number + 1, message_role(m));
        print_around(text, len, at);
        return true;
    }
    return false;
}

static int search(int argc, char **argv)
{
    struct row *rows;
    size_t n, found = 0;
    struct k3_error err = {0};
    if (argc != 2 || argv[1][0] == '\0')
        return usage_error("search takes one text");
    if (find_all(&rows, &n, &err) != K3_OK)
        return report_error(&err);
    for (size_t i = 0; i < n; i++) {
        struct transcript_contents c;
        if (sessions_load(rows[i].name, &c, &err) != K3_OK) {
            report_error(&err);
            continue;
        }
        for (size_t k = 0; k < c.conversation.n; k++) {
            found += search_field(rows[i].name, k, &c.conversation.v[k], "content", argv[1]);
            found += search_field(rows[i].name, k, &c.conversation.v[k], "reasoning_content",
                                  argv[1]);
        }
        conversation_free(&c.conversation);
    }
    free_rows(rows, n);
    return found > 0 ? 0 : 1;
}

/* ---- check and import -------------------------------------------------------------------- */

static void on_notice(void *ud, const char *text)
{
    (void)ud;
    fprintf(stderr, "k3chat: %s\n", text);
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
    if (status == K3_OK) {
        printf("%u answers with %u tokens are what a fresh run gives", (unsigned)done.answers,
               (unsigned)done.tokens);
        if (done.from_state > 0)
            printf(", and the saved state of %u positions gives the same bits",
                   (unsigned)done.from_state);
        putchar('\n');
        if (done.foreign > 0)
            printf("%u answers were not compared: imported, or made by another model or version\n",
                   (unsigned)done.foreign);
    }
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
