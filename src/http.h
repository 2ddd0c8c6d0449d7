/* http.h - one file at a time from a server, over libcurl.
 *
 * Redirects are followed here and not by the library, so that it can be seen in one place to whom the
 * token and the password of the address go: to the server of the address, and never again once a
 * redirect has led elsewhere. No secret stands in a message: neither token nor password nor the
 * query of an address. */
#ifndef K3CHAT_HTTP_H
#define K3CHAT_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest.h"

#define HTTP_UNKNOWN UINT64_MAX
#define HTTP_ETAG 256

/* The server and folder that files are asked from. */
struct http_site {
    char *base;      /* the address, without a slash at its end, user, password and query */
    char *query;     /* goes behind each file's name; NULL = none */
    char *user, *password; /* or NULL */
    char *origin;    /* "https://host:443" */
    const char *token; /* NULL = none; belongs to the caller */
    uint32_t timeout;  /* seconds without a byte after which a connection counts as cut */
};

/* K3_USAGE for what is no http or https address, and for a token that would travel unencrypted to
 * another machine. */
enum k3_status http_site_init(struct http_site *s, const char *address, const char *token,
                              uint32_t timeout, struct k3_error *err);
void http_site_free(struct http_site *s);

struct http_reply {
    long status;
    uint64_t from, total;     /* of the bytes that come; total HTTP_UNKNOWN = not told */
    uint32_t retry_after;     /* seconds that the server asks for; 0 = none */
    char etag[HTTP_ETAG];     /* "" = none */
    char sha256[DIGEST_HEX];  /* of the file, when the server told; else "" */
    uint64_t linked_size;     /* of the file behind a redirect, when told, else HTTP_UNKNOWN */
    char commit[DIGEST_HEX];  /* the repository's, when told; else "" */
    bool elsewhere;           /* a redirect has led to another server */
};

enum http_end {
    HTTP_DONE,    /* 200 or 206 and the whole of its body */
    HTTP_ENOUGH,  /* the sink wanted no more */
    HTTP_AGAIN,   /* may go well later: cut off, timed out, overloaded */
    HTTP_REFUSED, /* will not go well later */
    HTTP_STOPPED,
};

/* Gets the bytes of a 200 or 206 as they come, at least once before the first byte with n = 0; false
 * ends the transfer. */
typedef bool (*http_sink)(void *ud, const struct http_reply *r, const void *bytes, size_t n);

struct http {
    void *curl;
    const struct http_site *site;
    const atomic_bool *stop;
};

/* One for each thread; the site outlives it. */
enum k3_status http_open(struct http *h, const struct http_site *site, const atomic_bool *stop,
                         struct k3_error *err);
void http_close(struct http *h);

struct http_range {
    uint64_t from;
    bool one;             /* this byte only, to learn about the file */
    const char *if_range; /* send the rest only if the file still has this etag; NULL = in any case */
};

/* Asks for the file `name` of the site; range NULL = all of it. err is set unless HTTP_DONE or
 * HTTP_ENOUGH comes back, and names the address. */
enum http_end http_get(struct http *h, const char *name, const struct http_range *range,
                       http_sink sink, void *ud, struct http_reply *reply, struct k3_error *err);

#endif
