/* http_site.c - the address that files come from, and what of it is secret. See http.h. */
#include <config.h>

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http_site.h"
#include "paths.h"

/* A part of the address, malloc'ed; NULL when it has none. */
static char *part(CURLU *u, CURLUPart what, unsigned flags, struct k3_error *err)
{
    char *text = NULL;
    if (curl_url_get(u, what, &text, flags) != CURLUE_OK || text == NULL)
        return NULL;
    char *copy = path_format(err, "%s", text);
    curl_free(text);
    return copy;
}

static bool is_http(CURLU *u, struct k3_error *err)
{
    char *scheme = part(u, CURLUPART_SCHEME, 0, err);
    const bool good = scheme != NULL &&
                      (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
    free(scheme);
    return good;
}

/* NULL for anything but a whole http or https address. */
static CURLU *parse(const char *address, struct k3_error *err)
{
    CURLU *u = curl_url();
    if (u != NULL && curl_url_set(u, CURLUPART_URL, address, 0) == CURLUE_OK && is_http(u, err))
        return u;
    curl_url_cleanup(u);
    return NULL;
}

static char *origin_of(CURLU *u, struct k3_error *err)
{
    char *scheme = part(u, CURLUPART_SCHEME, 0, err), *host = part(u, CURLUPART_HOST, 0, err);
    char *port = part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, err);
    char *origin = NULL;
    if (scheme != NULL && host != NULL && port != NULL)
        origin = path_format(err, "%s://%s:%s", scheme, host, port);
    for (char *p = origin; p != NULL && *p != '\0'; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    free(scheme);
    free(host);
    free(port);
    return origin;
}

char *http_origin(const char *address, struct k3_error *err)
{
    CURLU *u = parse(address, err);
    char *origin = u == NULL ? NULL : origin_of(u, err);
    curl_url_cleanup(u);
    if (origin == NULL)
        k3_fail(err, K3_FAILED, "no http or https address");
    return origin;
}

/* Takes user, password and query out of the address; what is left can be shown. */
static enum k3_status take_apart(struct http_site *s, CURLU *u, struct k3_error *err)
{
    s->user = part(u, CURLUPART_USER, CURLU_URLDECODE, err);
    s->password = part(u, CURLUPART_PASSWORD, CURLU_URLDECODE, err);
    s->query = part(u, CURLUPART_QUERY, 0, err);
    s->origin = origin_of(u, err);
    static const CURLUPart secret[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                       CURLUPART_FRAGMENT};
    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++)
        curl_url_set(u, secret[i], NULL, 0);
    s->base = part(u, CURLUPART_URL, 0, err);
    if (s->base == NULL || s->origin == NULL)
        return k3_fail_memory(err, "the address", 1000);
    for (size_t n = strlen(s->base); n > 0 && s->base[n - 1] == '/'; n--)
        s->base[n - 1] = '\0';
    return K3_OK;
}

/* Nobody listens between a machine and itself. */
static bool is_loopback(const char *origin)
{
    static const char *const own[] = {"http://localhost:", "http://127.0.0.1:", "http://[::1]:"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strncmp(origin, own[i], strlen(own[i])) == 0)
            return true;
    return false;
}

enum k3_status http_site_init(struct http_site *s, const char *address, const char *token,
                              uint32_t timeout, struct k3_error *err)
{
    *s = (struct http_site){.token = token, .timeout = timeout};
    CURLU *u = parse(address, err);
    if (u == NULL)
        return k3_fail(err, K3_USAGE,
                       "the address to fetch from is no http or https address: write it as "
                       "https://HOST/PATH, or a repository as OWNER/NAME");
    enum k3_status st = take_apart(s, u, err);
    curl_url_cleanup(u);
    if (st == K3_OK && (token != NULL || s->password != NULL) &&
        strncmp(s->origin, "http:", 5) == 0 && !is_loopback(s->origin))
        st = k3_fail(err, K3_USAGE,
                     "%s: a token or password would go there unencrypted; use https, or unset it",
                     s->base);
    return st;
}

void http_site_free(struct http_site *s)
{
    free(s->base);
    free(s->query);
    free(s->user);
    free(s->password);
    free(s->origin);
    *s = (struct http_site){0};
}

char *http_url(const struct http_site *s, void *curl, const char *name, struct k3_error *err)
{
    char *escaped = curl_easy_escape(curl, name, 0);
    char *url = escaped == NULL ? NULL
                : s->query == NULL
                    ? path_format(err, "%s/%s", s->base, escaped)
                    : path_format(err, "%s/%s?%s", s->base, escaped, s->query);
    curl_free(escaped);
    if (url == NULL)
        k3_fail_memory(err, "an address", strlen(s->base) + strlen(name));
    return url;
}

char *http_shown(const struct http_site *s, const char *name, struct k3_error *err)
{
    return path_format(err, "%s/%s", s->base, name);
}
