/* ckfiles.c - see ckfiles.h. */
#include <config.h>

#include "ckfiles.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "paths.h"

#define NAME_MAX_BYTES 200 /* with the endings that are put behind it, a file name can have 255 */

const struct ckfile ckfiles_small[] = {
    {"config.json", true},
    {"generation_config.json", false},
    {"tiktoken.model", true},
    {"tokenizer_config.json", true},
};
const size_t n_ckfiles_small = sizeof ckfiles_small / sizeof ckfiles_small[0];

/* Names come from a server: none may lead out of the folder or hide in it. */
static bool plain_name(const char *name)
{
    static const char ending[] = ".safetensors";
    const size_t n = strlen(name), e = sizeof ending - 1;
    if (n <= e || n > NAME_MAX_BYTES || name[0] == '.' || strcmp(name + n - e, ending) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] <= 0x20 || name[i] == 0x7f || strchr("/\\\"'", name[i]) != NULL)
            return false;
    return true;
}

static enum k3_status add(struct ckfiles *f, const char *name, struct k3_error *err)
{
    char **v = realloc(f->shards, (f->n + 1) * sizeof *v);
    if (v == NULL)
        return k3_fail_memory(err, "the list of shards", (f->n + 1) * sizeof *v);
    f->shards = v;
    v[f->n] = path_format(err, "%s", name);
    if (v[f->n] == NULL)
        return err->status;
    f->n++;
    return K3_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every shard once: the index names it for each tensor. */
static enum k3_status add_all(struct ckfiles *f, const char *path, json_t *map, json_t *met,
                              struct k3_error *err)
{
    const char *tensor;
    json_t *v;
    json_object_foreach (map, tensor, v) {
        const char *name = json_string_value(v);
        if (name == NULL || !plain_name(name))
            return k3_fail(err, K3_FAILED,
                           "%s: weight_map: tensor %.200s: its shard is not a plain file name that "
                           "ends in .safetensors; this index is not that of a checkpoint", path,
                           tensor);
        if (json_object_get(met, name) != NULL)
            continue;
        if (json_object_set_new(met, name, json_true()) != 0)
            return k3_fail_memory(err, "the list of shards", strlen(name));
        if (add(f, name, err) != K3_OK)
            return err->status;
    }
    return K3_OK;
}

static enum k3_status read_index(struct ckfiles *f, const char *path, struct k3_error *err)
{
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    if (root == NULL)
        return k3_fail(err, K3_FAILED, "%s: not JSON (line %d: %s); fetch it again", path, why.line,
                       why.text);
    json_t *map = json_object_get(root, "weight_map");
    json_t *met = json_object();
    enum k3_status st = K3_OK;
    if (json_object_size(map) == 0)
        st = k3_fail(err, K3_FAILED, "%s: weight_map is missing, empty or not an object; this is "
                     "not the index of a checkpoint", path);
    else if (met == NULL)
        st = k3_fail_memory(err, "the list of shards", 1);
    else
        st = add_all(f, path, map, met, err);
    /* Some writers make it a real number. */
    const double total =
        json_number_value(json_object_get(json_object_get(root, "metadata"), "total_size"));
    f->total_size = total > 0 && total < 1e18 ? (uint64_t)total : 0;
    json_decref(met);
    json_decref(root);
    if (st == K3_OK)
        qsort(f->shards, f->n, sizeof *f->shards, by_name);
    return st;
}

enum k3_status ckfiles_read(struct ckfiles *f, const char *dir, struct k3_error *err)
{
    char *path = path_format(err, "%s/" CKFILES_INDEX, dir);
    if (path == NULL)
        return err->status;
    f->index = path_is_file(path);
    const enum k3_status st = f->index ? read_index(f, path, err) : add(f, CKFILES_SINGLE, err);
    free(path);
    return st;
}

void ckfiles_free(struct ckfiles *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->shards[i]);
    free(f->shards);
    *f = (struct ckfiles){0};
}
