/* paths.h - where the user's files lie (XDG base directories) and small helpers for paths.
 *
 * Returned strings are malloc'ed and belong to the caller; NULL means failure with err set. */
#ifndef K3CHAT_PATHS_H
#define K3CHAT_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "../engine/k3_error.h"

/* $XDG_CONFIG_HOME/k3chat, $XDG_DATA_HOME/k3chat; a variable that is unset, empty or not absolute
 * counts as ~/.config or ~/.local/share. Nothing is created. */
char *path_config_dir(struct k3_error *err);
char *path_data_dir(struct k3_error *err);

/* "~" and "~/x" become the home folder; everything else is copied. */
char *path_expand_home(const char *path, struct k3_error *err);

/* printf into a new string. */
char *path_format(struct k3_error *err, const char *fmt, ...) K3_PRINTF(2, 3);

/* The folder of a path: "a/b" -> "a", "b" -> ".", "/b" -> "/". */
char *path_dirname(const char *path, struct k3_error *err);

/* The folder that the running program lies in. */
char *path_program_dir(struct k3_error *err);

/* Creates a folder and its missing parents with mode 0700. Existing ones are left alone. */
enum k3_status path_make_dirs(const char *path, struct k3_error *err);

bool path_is_file(const char *path);
bool path_is_dir(const char *path);

/* Reads a whole regular file or pipe up to `max` bytes; a zero byte stands behind the contents. */
char *path_read_file(const char *path, size_t max, size_t *len, struct k3_error *err);

#endif
