/* fetch_source.h - the words that say where a checkpoint comes from. */
#ifndef K3CHAT_FETCH_SOURCE_H
#define K3CHAT_FETCH_SOURCE_H

#include <stdio.h>

#include "http.h"
#include "settings.h"

/* The site for an address, or for a repository OWNER/NAME at --endpoint, with the token of the
 * environment: K3CHAT_TOKEN, or for a repository HF_TOKEN. */
enum k3_status fetch_source_open(const struct fetch_request *ask, struct http_site *site,
                                 struct k3_error *err);
/* From now on the files of this commit, whatever happens to the branch; for an address, nothing. */
enum k3_status fetch_source_pin(const struct fetch_request *ask, struct http_site *site,
                                const char *commit, struct k3_error *err);
/* The same source as words for a command line, without secrets; malloc'ed. */
char *fetch_source_words(const struct fetch_request *ask, const struct http_site *site,
                         struct k3_error *err);

/* Prints a word so that a shell takes it for one. */
void fetch_print_word(FILE *out, const char *word);

#endif
