/* disk_rate.c - see disk_rate.h. The file is a JSON object: the folder's real path -> rate and time. */
#include <config.h>

#include "disk_rate.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "paths.h"

#define FILE_MAX_BYTES (1u << 20)

static char *rates_path(struct k3_error *err)
{
    char *dir = path_data_dir(err);
    char *path = dir == NULL ? NULL : path_format(err, "%s/disk-rates.json", dir);
    free(dir);
    return path;
}

/* What the file holds; an empty object when there is none or it is no such object. */
static json_t *load(const char *path)
{
    struct k3_error unused;
    size_t len = 0;
    char *text = path_read_file(path, FILE_MAX_BYTES, &len, &unused);
    json_t *all = text == NULL ? NULL : json_loadb(text, len, 0, NULL);
    free(text);
    if (json_is_object(all))
        return all;
    json_decref(all);
    return json_object();
}

/* Whole or not at all: beside its name, then renamed. */
static enum k3_status store(const char *path, const json_t *all, struct k3_error *err)
{
    char *temp = path_format(err, "%s.tmp", path);
    if (temp == NULL)
        return err->status;
    enum k3_status status = K3_OK;
    if (json_dump_file(all, temp, JSON_INDENT(1) | JSON_SORT_KEYS) != 0 || rename(temp, path) != 0) {
        status = k3_fail(err, K3_FAILED, "%s: %s", path, strerror(errno));
        remove(temp);
    }
    free(temp);
    return status;
}

enum k3_status disk_rate_keep(const char *model_dir, double rate, struct k3_error *err)
{
    enum k3_status status = K3_FAILED;
    char *dir = path_data_dir(err), *path = rates_path(err), *real = realpath(model_dir, NULL);
    json_t *all = NULL;
    if (real == NULL)
        status = k3_fail(err, K3_FAILED, "%s: %s", model_dir, strerror(errno));
    else if (dir != NULL && path != NULL && path_make_dirs(dir, err) == K3_OK) {
        all = load(path);
        json_t *one = json_pack("{s:f, s:I}", "bytes_per_second", rate, "time",
                                (json_int_t)time(NULL));
        status = json_object_set_new(all, real, one) != 0
                     ? k3_fail(err, K3_FAILED, "%s: a folder's name that is no UTF-8", real)
                     : store(path, all, err);
    }
    json_decref(all);
    free(real);
    free(path);
    free(dir);
    return status;
}

double disk_rate_kept(const char *model_dir)
{
    struct k3_error unused;
    char *path = rates_path(&unused), *real = realpath(model_dir, NULL);
    double rate = 0;
    if (path != NULL && real != NULL) {
        json_t *all = load(path);
        rate = json_number_value(
            json_object_get(json_object_get(all, real), "bytes_per_second"));
        json_decref(all);
    }
    free(real);
    free(path);
    return rate > 0 ? rate : 0;
}
