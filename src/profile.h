/* profile.h - YAML profiles: finding them, reading them into a request.
 *
 * The schema is the `key` column of the settings table. Whatever does not fit it (an unknown key, a
 * wrong type, a bad value, a key given twice) is refused with file, line and column. */
#ifndef K3CHAT_PROFILE_H
#define K3CHAT_PROFILE_H

#include "settings.h"

/* The path of the profile that `name` means (malloc'ed). A name with a '/' or ending in .yaml or
 * .yml is a path; others are looked for as NAME.yaml in the user's folder, the installed one and,
 * for a program that is not installed, in $K3CHAT_CONF or a folder conf beside or above the
 * executable. NULL: K3_USAGE, the message lists the places. */
char *profile_find(const char *name, struct k3_error *err);

/* Reads one file into the request. */
enum k3_status profile_load(struct request *r, const char *path, struct k3_error *err);

/* Loads the profile `name`; NULL = the user's "default" if there is one, else, when no model has
 * been named either, "demo" if it is found, else none. */
enum k3_status profile_load_for(struct request *r, const char *name, bool has_model,
                                struct k3_error *err);

#endif
