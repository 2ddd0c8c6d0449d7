/* http.c - see http.h. The address itself is taken apart in http_site.c. */
#include <config.h>

#include "http.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "http_site.h"
#include "paths.h"

#define MAX_REDIRECTS 8
#define CONNECT_SECONDS 30
#define BUFFER_BYTES (512L << 10)

/* One request with its redirects. */
struct ask {
    struct http *h;
    const char *shown; /* the address for messages */
    http_sink sink;
    void *ud;
    struct http_reply *reply;
    bool enough, begun, silent;
    double heard;      /* when the last byte came */
};

enum k3_status http_open(struct http *h, const struct http_site *site, const atomic_bool *stop,
                         struct k3_error *err)
{
    *h = (struct http){.site = site, .stop = stop, .curl = curl_easy_init()};
    return h->curl != NULL ? K3_OK : k3_fail_memory(err, "a connection", 100000);
}

void http_close(struct http *h)
{
    if (h->curl != NULL)
        curl_easy_cleanup(h->curl);
    h->curl = NULL;
}

/* ---- what comes back --------------------------------------------------------------------- */

/* "bytes 10-19/200", "bytes * /200" (without the space) */
static void take_content_range(struct http_reply *r, const char *value)
{
    uint64_t from = 0, last = 0, total = 0;
    if (sscanf(value, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &from, &last, &total) == 3) {
        r->from = from;
        r->total = total;
    } else if (sscanf(value, "bytes */%" SCNu64, &total) == 1) {
        r->total = total;
    }
}

/* What does not fit is not what it is meant to be, and counts as not told. */
static void take_text(char *out, size_t cap, const char *value)
{
    const size_t n = strlen(value);
    memcpy(out, value, n < cap ? n + 1 : 0);
    if (n >= cap)
        out[0] = '\0';
}

/* An etag of 64 hexadecimal digits is the SHA-256 of the file: that is how model repositories that
 * keep large files apart tell it. */
static void take_linked_etag(struct http_reply *r, const char *value)
{
    if (strncmp(value, "W/", 2) == 0)
        value += 2;
    value += *value == '"';
    (void)digest_parse(value, strcspn(value, "\""), r->sha256);
}

static void take_field(struct http_reply *r, const char *name, const char *value)
{
    if (strcasecmp(name, "content-range") == 0)
        take_content_range(r, value);
    else if (strcasecmp(name, "content-length") == 0 && r->status == 200)
        r->total = strtoull(value, NULL, 10);
    else if (strcasecmp(name, "etag") == 0)
        take_text(r->etag, sizeof r->etag, value);
    else if (strcasecmp(name, "retry-after") == 0)
        r->retry_after = (uint32_t)strtoul(value, NULL, 10); /* a date counts as none */
    else if (strcasecmp(name, "x-linked-etag") == 0 && !r->elsewhere)
        take_linked_etag(r, value);
    else if (strcasecmp(name, "x-linked-size") == 0 && !r->elsewhere)
        r->linked_size = strtoull(value, NULL, 10);
    else if (strcasecmp(name, "x-repo-commit") == 0 && !r->elsewhere &&
             strspn(value, "0123456789abcdef") == strlen(value))
        take_text(r->commit, sizeof r->commit, value);
}

/* A response begins; what stood in the one before (a redirect) and is about the file stays. */
static void begin_response(struct http_reply *r, const char *line)
{
    const char *code = strchr(line, ' ');
    r->status = code == NULL ? 0 : strtol(code, NULL, 10);
    r->from = 0;
    r->total = HTTP_UNKNOWN;
    r->retry_after = 0;
    r->etag[0] = '\0';
}

static size_t on_header(char *line, size_t size, size_t n, void *ud)
{
    struct ask *a = ud;
    char text[1024];
    a->heard = clock_now();
    size_t len = size * n;
    if (len >= sizeof text)
        return len; /* none of ours is that long */
    memcpy(text, line, len);
    while (len > 0 && strchr("\r\n \t", text[len - 1]) != NULL)
        len--;
    text[len] = '\0';
    char *colon = strchr(text, ':');
    if (strncmp(text, "HTTP/", 5) == 0) {
        begin_response(a->reply, text);
    } else if (colon != NULL) {
        *colon = '\0';
        take_field(a->reply, text, colon + 1 + strspn(colon + 1, " \t"));
    }
    return size * n;
}

static bool hand_over(struct ask *a, const void *bytes, size_t n)
{
    a->begun = true;
    if (!a->enough && !a->sink(a->ud, a->reply, bytes, n))
        a->enough = true;
    return !a->enough;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ud)
{
    struct ask *a = ud;
    const bool wanted = a->reply->status == 200 || a->reply->status == 206;
    bool more = true; /* else the page of a redirect or an error */
    if (wanted && !a->begun)
        more = hand_over(a, bytes, 0);
    if (wanted && more)
        more = hand_over(a, bytes, size * n);
    a->heard = clock_now(); /* a slow disk is no silent server */
    return more ? size * n : 0;
}

/* Called once a second at least, also when nothing comes. The library's own limit on slow transfers
 * looks at a mean, and is late by seconds. */
static int on_progress(void *ud, curl_off_t all, curl_off_t down, curl_off_t upload, curl_off_t up)
{
    (void)all, (void)down, (void)upload, (void)up;
    struct ask *a = ud;
    a->silent = clock_now() - a->heard > (double)a->h->site->timeout;
    return a->silent || atomic_load(a->h->stop) ? 1 : 0;
}

/* ---- asking ------------------------------------------------------------------------------ */

static void set_protocols(CURL *c)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* message: CURL_ERROR_SIZE bytes that outlive the transfer. */
static void set_transfer(struct ask *a, char *message)
{
    CURL *c = a->h->curl;
    const long timeout = (long)a->h->site->timeout;
    curl_easy_reset(c); /* the connection stays */
    set_protocols(c);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "k3chat/" PACKAGE_VERSION);
    curl_easy_setopt(c, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT,
                     timeout < CONNECT_SECONDS ? timeout : CONNECT_SECONDS);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, a);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}

static bool append(struct curl_slist **list, const char *line)
{
    struct curl_slist *grown = curl_slist_append(*list, line);
    if (grown != NULL)
        *list = grown;
    return grown != NULL;
}

/* Secrets go to the site's own server only. */
static bool set_secrets(struct http *h, struct curl_slist **headers, struct k3_error *err)
{
    const struct http_site *s = h->site;
    if (s->user != NULL)
        curl_easy_setopt(h->curl, CURLOPT_USERNAME, s->user);
    if (s->password != NULL)
        curl_easy_setopt(h->curl, CURLOPT_PASSWORD, s->password);
    if (s->token == NULL)
        return true;
    char *line = path_format(err, "Authorization: Bearer %s", s->token);
    const bool good = line != NULL && append(headers, line);
    free(line);
    return good;
}

static bool set_headers(struct ask *a, const struct http_range *range, struct curl_slist **headers,
                        struct k3_error *err)
{
    char text[64], line[HTTP_ETAG + 16];
    bool good = append(headers, "Accept-Encoding: identity");
    if (good && !a->reply->elsewhere)
        good = set_secrets(a->h, headers, err);
    if (range != NULL && (range->from > 0 || range->one)) {
        snprintf(text, sizeof text, "%" PRIu64 "-", range->from);
        if (range->one)
            snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, range->from, range->from);
        curl_easy_setopt(a->h->curl, CURLOPT_RANGE, text);
    }
    if (good && range != NULL && range->if_range != NULL) {
        snprintf(line, sizeof line, "If-Range: %s", range->if_range);
        good = append(headers, line);
    }
    return good;
}

static enum http_end judge_curl(const struct ask *a, CURLcode rc, const char *message,
                                struct k3_error *err)
{
    if (rc == CURLE_WRITE_ERROR && a->enough)
        return HTTP_ENOUGH;
    if (rc == CURLE_ABORTED_BY_CALLBACK && !a->silent) {
        k3_fail(err, K3_CANCELLED, "stopped");
        return HTTP_STOPPED;
    }
    if (rc == CURLE_ABORTED_BY_CALLBACK) {
        k3_fail(err, K3_FAILED, "%s: nothing came for %u s", a->shown,
                (unsigned)a->h->site->timeout);
        return HTTP_AGAIN;
    }
    const char *why = message[0] != '\0' ? message : curl_easy_strerror(rc);
    /* The library's words may hold the address that a redirect led to, and its query. */
    if (a->reply->elsewhere)
        why = curl_easy_strerror(rc);
    k3_fail(err, K3_FAILED, "%s: %s%s", a->shown, why,
            a->reply->elsewhere ? " (the server that it redirects to)" : "");
    switch (rc) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_OUT_OF_MEMORY:
        return HTTP_REFUSED;
    default:
        return HTTP_AGAIN;
    }
}

static enum http_end judge_status(const struct ask *a, struct k3_error *err)
{
    const struct http_reply *r = a->reply;
    const char *hint = "";
    if (r->status == 200 || r->status == 206)
        return HTTP_DONE;
    if (r->status == 401 || r->status == 403)
        hint = a->h->site->token != NULL ? ": the token is not accepted there, or has no access"
                                         : ": it wants a token; see the section on fetching in the "
                                           "guide";
    else if (r->status == 404)
        hint = ": there is no such file; check the address";
    k3_fail(err, K3_FAILED, "%s: the server%s answered with status %ld%s", a->shown,
            r->elsewhere ? " that it redirects to" : "", r->status, hint);
    const bool later = r->status >= 500 || r->status == 408 || r->status == 425 || r->status == 429;
    return later ? HTTP_AGAIN : HTTP_REFUSED;
}

/* One request. *next is where it redirects to, malloc'ed, or NULL. */
static enum http_end ask_once(struct ask *a, const char *url, const struct http_range *range,
                              char **next, struct k3_error *err)
{
    char message[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = NULL;
    char *location = NULL;
    *next = NULL;
    set_transfer(a, message);
    enum http_end end = HTTP_REFUSED;
    if (!set_headers(a, range, &headers, err)) {
        k3_fail_memory(err, "a request", 1000);
        goto done;
    }
    curl_easy_setopt(a->h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(a->h->curl, CURLOPT_URL, url);
    begin_response(a->reply, "");
    a->heard = clock_now();
    const CURLcode rc = curl_easy_perform(a->h->curl);
    if (rc != CURLE_OK) {
        end = judge_curl(a, rc, message, err);
        goto done;
    }
    curl_easy_getinfo(a->h->curl, CURLINFO_REDIRECT_URL, &location);
    if (location == NULL) {
        end = judge_status(a, err);
    } else if ((*next = path_format(err, "%s", location)) != NULL) {
        end = HTTP_DONE;
    }
done:
    curl_slist_free_all(headers);
    return end;
}

/* May the redirect be followed? Tells the reply when it leads to another server. */
static bool allow_redirect(struct ask *a, const char *from, const char *to, struct k3_error *err)
{
    char *there = http_origin(to, err);
    if (there == NULL) {
        k3_fail(err, K3_FAILED, "%s: redirects to what is no http or https address", a->shown);
        return false;
    }
    const bool good = strncasecmp(from, "https:", 6) != 0 || strncasecmp(to, "https:", 6) == 0;
    if (!good)
        k3_fail(err, K3_FAILED, "%s: redirects from https to unencrypted http, which is refused",
                a->shown);
    if (strcmp(there, a->h->site->origin) != 0)
        a->reply->elsewhere = true;
    free(there);
    return good;
}

enum http_end http_get(struct http *h, const char *name, const struct http_range *range,
                       http_sink sink, void *ud, struct http_reply *reply, struct k3_error *err)
{
    char *url = http_url(h->site, h->curl, name, err), *next = NULL;
    char *shown = url == NULL ? NULL : http_shown(h->site, name, err);
    struct ask a = {.h = h, .shown = shown, .sink = sink, .ud = ud, .reply = reply};
    enum http_end end = HTTP_REFUSED;
    *reply = (struct http_reply){.linked_size = HTTP_UNKNOWN, .total = HTTP_UNKNOWN};
    for (int hops = 0; shown != NULL; hops++) {
        end = ask_once(&a, url, range, &next, err);
        if (next == NULL)
            break;
        end = HTTP_REFUSED;
        if (hops == MAX_REDIRECTS)
            k3_fail(err, K3_FAILED, "%s: redirects more than %d times", shown, MAX_REDIRECTS);
        if (hops == MAX_REDIRECTS || !allow_redirect(&a, url, next, err))
            break;
        free(url);
        url = next;
    }
    /* An empty file has no body that the sink could have heard of. */
    if (end == HTTP_DONE && !a.begun && !hand_over(&a, "", 0))
        end = HTTP_ENOUGH;
    if (next != url)
        free(next);
    free(url);
    free(shown);
    return end;
}
