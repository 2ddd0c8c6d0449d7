/* http_site.h - between http.c and http_site.c: addresses. Returned strings are malloc'ed; NULL means
 * failure with err set. */
#ifndef K3CHAT_HTTP_SITE_H
#define K3CHAT_HTTP_SITE_H

#include "http.h"

/* "https://host:443" of an address. */
char *http_origin(const char *address, struct k3_error *err);
/* The address of a file; `curl` is the handle to escape with. */
char *http_url(const struct http_site *s, void *curl, const char *name, struct k3_error *err);
/* The same for messages: nothing secret in it. */
char *http_shown(const struct http_site *s, const char *name, struct k3_error *err);

#endif
