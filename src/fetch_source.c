/* fetch_source.c - see fetch_source.h.
 *
 * A repository's files stand at ENDPOINT/OWNER/NAME/resolve/REVISION/FILE. */
#include <config.h>

#include "fetch_source.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"

#define ENDPOINT "https://huggingface.co"
#define REVISION "main"

static bool is_address(const char *where)
{
    return strstr(where, "://") != NULL;
}

/* OWNER/NAME, of letters, digits and "._-" */
static bool is_repository(const char *where)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t owner = strspn(where, good);
    const char *name = where + owner + 1;
    return owner > 0 && where[0] != '.' && where[owner] == '/' && name[0] != '\0' &&
           name[0] != '.' && name[strspn(name, good)] == '\0';
}

/* The option, else the environment, else the public one. */
static const char *endpoint(const struct fetch_request *ask)
{
    const char *env = getenv("HF_ENDPOINT");
    return ask->endpoint != NULL ? ask->endpoint : env != NULL && env[0] != '\0' ? env : ENDPOINT;
}

static char *repository_address(const struct fetch_request *ask, const char *revision,
                                struct k3_error *err)
{
    const char *base = endpoint(ask);
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/')
        n--;
    char *escaped = curl_easy_escape(NULL, revision, 0);
    char *address = escaped == NULL ? NULL
                                    : path_format(err, "%.*s/%s/resolve/%s", (int)n, base,
                                                  ask->where, escaped);
    if (escaped == NULL)
        k3_fail_memory(err, "an address", n);
    curl_free(escaped);
    return address;
}

/* ---- the token --------------------------------------------------------------------------- */

/* It goes into a line of the request: nothing may stand in it that would end the line. */
static enum k3_status check_token(const char *variable, const char *token, struct k3_error *err)
{
    for (const char *p = token; *p != '\0'; p++)
        if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
            return k3_fail(err, K3_USAGE, "%s: the token has a space, a line break or another "
                           "character that no token has; set it without", variable);
    return K3_OK;
}

/* HF_TOKEN is meant for repositories; it does not go to whatever address is fetched from. */
static enum k3_status find_token(bool repository, const char **token, struct k3_error *err)
{
    const char *own = getenv("K3CHAT_TOKEN"), *hub = getenv("HF_TOKEN");
    *token = NULL;
    if (own != NULL && own[0] != '\0') {
        *token = own;
        return check_token("K3CHAT_TOKEN", own, err);
    }
    if (!repository || hub == NULL || hub[0] == '\0')
        return K3_OK;
    *token = hub;
    return check_token("HF_TOKEN", hub, err);
}

/* ---- the source -------------------------------------------------------------------------- */

static enum k3_status open_site(const struct fetch_request *ask, struct http_site *site,
                                const char *revision, struct k3_error *err)
{
    const bool repository = !is_address(ask->where);
    const char *token = NULL;
    if (find_token(repository, &token, err) != K3_OK)
        return err->status;
    if (!repository)
        return http_site_init(site, ask->where, token, ask->timeout, err);
    char *address = repository_address(ask, revision, err);
    enum k3_status st =
        address == NULL ? err->status : http_site_init(site, address, token, ask->timeout, err);
    free(address);
    if (st == K3_OK && (site->user != NULL || site->query != NULL))
        st = k3_fail(err, K3_USAGE, "the address of the server of repositories must have neither "
                     "user nor '?'; a token goes into K3CHAT_TOKEN");
    return st;
}

enum k3_status fetch_source_open(const struct fetch_request *ask, struct http_site *site,
                                 struct k3_error *err)
{
    if (!is_address(ask->where) && !is_repository(ask->where))
        return k3_fail(err, K3_USAGE,
                       "'%s' is neither an address (https://HOST/PATH) nor a repository "
                       "(OWNER/NAME)", ask->where);
    if (is_address(ask->where) && (ask->revision != NULL || ask->endpoint != NULL))
        return k3_fail(err, K3_USAGE, "--%s goes with a repository (OWNER/NAME), not with an address",
                       ask->revision != NULL ? "revision" : "endpoint");
    return open_site(ask, site, ask->revision != NULL ? ask->revision : REVISION, err);
}

enum k3_status fetch_source_pin(const struct fetch_request *ask, struct http_site *site,
                                const char *commit, struct k3_error *err)
{
    struct http_site pinned = {0};
    if (is_address(ask->where))
        return K3_OK;
    if (open_site(ask, &pinned, commit, err) != K3_OK) {
        http_site_free(&pinned);
        return err->status;
    }
    http_site_free(site);
    *site = pinned;
    return K3_OK;
}

/* Characters that no shell takes for anything else. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";
    return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

void fetch_print_word(FILE *out, const char *word)
{
    if (is_plain(word)) {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            putc(*word, out);
    }
    putc('\'', out);
}

char *fetch_source_words(const struct fetch_request *ask, const struct http_site *site,
                         struct k3_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f == NULL) {
        k3_fail_memory(err, "the source", 1000);
        return NULL;
    }
    if (is_address(ask->where)) {
        fetch_print_word(f, site->base);
    } else {
        if (strcmp(endpoint(ask), ENDPOINT) != 0) {
            fputs("--endpoint ", f);
            fetch_print_word(f, endpoint(ask));
            putc(' ', f);
        }
        if (ask->revision != NULL) {
            fputs("--revision ", f);
            fetch_print_word(f, ask->revision);
            putc(' ', f);
        }
        fetch_print_word(f, ask->where);
    }
    if (fclose(f) != 0) {
        free(text);
        k3_fail_memory(err, "the source", 1000);
        return NULL;
    }
    return text;
}
