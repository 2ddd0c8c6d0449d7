/* profile.c - reads a profile with libyaml; see profile.h. */
#include <config.h>

#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "paths.h"

#define PROFILE_MAX_BYTES (1u << 20)
#define KEY_MAX 128

struct reader {
    struct request *r;
    yaml_document_t doc;
    const char *path;
    struct k3_error *err;
};

/* Puts "FILE:LINE:COLUMN: " before the message that is there. */
static enum k3_status fail_at(struct reader *rd, yaml_mark_t at)
{
    return k3_fail_in(rd->err, "%s:%zu:%zu", rd->path, at.line + 1, at.column + 1);
}

#define FAIL_AT(rd, mark, ...) (k3_fail((rd)->err, K3_USAGE, __VA_ARGS__), fail_at(rd, mark))

static const char *node_type(const yaml_node_t *n)
{
    return n->type == YAML_MAPPING_NODE    ? "a mapping"
           : n->type == YAML_SEQUENCE_NODE ? "a list"
                                           : "a single value";
}

/* A scalar as a C string; it may not be empty or hold a zero byte. */
static enum k3_status scalar_text(struct reader *rd, const yaml_node_t *n, const char *key,
                                  const char **text)
{
    if (n->type != YAML_SCALAR_NODE)
        return FAIL_AT(rd, n->start_mark, "'%s' is %s; a single value belongs here", key,
                       node_type(n));
    *text = (const char *)n->data.scalar.value;
    if (strlen(*text) != n->data.scalar.length)
        return FAIL_AT(rd, n->start_mark, "'%s' holds a zero byte", key);
    if (n->data.scalar.length == 0)
        return FAIL_AT(rd, n->start_mark, "'%s' has no value; leave the key out for the default",
                       key);
    return K3_OK;
}

/* A path as it is meant: ~ expanded, relative to the profile's folder. */
static char *resolve_path(struct reader *rd, const char *text)
{
    char *path = path_expand_home(text, rd->err);
    if (path == NULL || path[0] == '/')
        return path;
    char *dir = path_dirname(rd->path, rd->err);
    char *full = dir == NULL ? NULL : path_format(rd->err, "%s/%s", dir, path);
    free(dir);
    free(path);
    return full;
}

static enum k3_status take_value(struct reader *rd, const struct setting *s, const yaml_node_t *n)
{
    const char *text = NULL;
    if (scalar_text(rd, n, s->key, &text) != K3_OK)
        return rd->err->status;
    char *path = NULL;
    if (s->shape == SHAPE_PATH) {
        path = resolve_path(rd, text);
        if (path == NULL)
            return fail_at(rd, n->start_mark);
        text = path;
    }
    const enum k3_status status = s->take(rd->r, text, rd->err);
    free(path);
    if (status == K3_OK)
        return K3_OK;
    k3_fail_in(rd->err, "%s", s->key);
    return fail_at(rd, n->start_mark);
}

/* One value of a mapping's name. */
static enum k3_status take_named(struct reader *rd, const struct setting *s, const char *name,
                                 const yaml_node_t *n)
{
    const char *text = NULL;
    char full[KEY_MAX];
    snprintf(full, sizeof full, "%s.%.60s", s->key, name);
    if (scalar_text(rd, n, full, &text) != K3_OK)
        return rd->err->status;
    char *both = path_format(rd->err, "%s %s", name, text);
    char *place = path_format(rd->err, "%s:%zu:%zu", rd->path, n->start_mark.line + 1,
                              n->start_mark.column + 1);
    enum k3_status status = rd->err->status;
    if (both != NULL && place != NULL) {
        rd->r->place = place;
        status = s->take(rd->r, both, rd->err);
        rd->r->place = NULL;
    }
    free(both);
    free(place);
    if (status == K3_OK)
        return K3_OK;
    k3_fail_in(rd->err, "%s", full);
    return fail_at(rd, n->start_mark);
}

static enum k3_status take_list(struct reader *rd, const struct setting *s, const yaml_node_t *n)
{
    if (n->type != YAML_SEQUENCE_NODE)
        return FAIL_AT(rd, n->start_mark, "'%s' is %s; a list belongs here", s->key, node_type(n));
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++)
        if (take_value(rd, s, yaml_document_get_node(&rd->doc, *i)) != K3_OK)
            return rd->err->status;
    return K3_OK;
}

static enum k3_status check_twice(struct reader *rd, const yaml_node_t *map,
                                  const yaml_node_pair_t *pair);

static enum k3_status take_map(struct reader *rd, const struct setting *s, const yaml_node_t *n)
{
    if (n->type != YAML_MAPPING_NODE)
        return FAIL_AT(rd, n->start_mark, "'%s' is %s; a mapping belongs here", s->key,
                       node_type(n));
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        const yaml_node_t *value = yaml_document_get_node(&rd->doc, p->value);
        const char *name = NULL;
        if (check_twice(rd, n, p) != K3_OK ||
            scalar_text(rd, yaml_document_get_node(&rd->doc, p->key), "a key", &name) != K3_OK)
            return rd->err->status;
        if (value->type != YAML_SEQUENCE_NODE) {
            if (take_named(rd, s, name, value) != K3_OK)
                return rd->err->status;
            continue;
        }
        for (yaml_node_item_t *i = value->data.sequence.items.start;
             i < value->data.sequence.items.top; i++)
            if (take_named(rd, s, name, yaml_document_get_node(&rd->doc, *i)) != K3_OK)
                return rd->err->status;
    }
    return K3_OK;
}

static const struct setting *find_key(const char *key)
{
    for (size_t i = 0; i < n_settings; i++)
        if (settings[i].key != NULL && strcmp(settings[i].key, key) == 0)
            return &settings[i];
    return NULL;
}

static bool is_section(const char *key)
{
    const size_t n = strlen(key);
    for (size_t i = 0; i < n_settings; i++)
        if (settings[i].key != NULL && strncmp(settings[i].key, key, n) == 0 &&
            settings[i].key[n] == '.')
            return true;
    return false;
}

/* The names that are possible below a prefix ("" or "memory."), for the message. */
static void list_keys(const char *prefix, char *out, size_t cap)
{
    const size_t n = strlen(prefix);
    out[0] = '\0';
    for (size_t i = 0; i < n_settings; i++) {
        const char *key = settings[i].key;
        if (key == NULL || strncmp(key, prefix, n) != 0)
            continue;
        char word[KEY_MAX];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(key + n, "."), key + n);
        const char *seen = strstr(out, word);
        const size_t w = strlen(word);
        if (seen != NULL && (seen[w] == '\0' || seen[w] == ','))
            continue;
        if (out[0] != '\0')
            strncat(out, ", ", cap - strlen(out) - 1);
        strncat(out, word, cap - strlen(out) - 1);
    }
}

static enum k3_status walk(struct reader *rd, const char *prefix, const yaml_node_t *map);

static enum k3_status take_pair(struct reader *rd, const char *prefix, const yaml_node_t *key,
                                const yaml_node_t *value)
{
    const char *name = NULL;
    if (scalar_text(rd, key, "a key", &name) != K3_OK)
        return rd->err->status;
    char full[KEY_MAX];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const struct setting *s = strchr(name, '.') == NULL ? find_key(full) : NULL;
    if (s != NULL)
        return s->shape == SHAPE_LIST  ? take_list(rd, s, value)
               : s->shape == SHAPE_MAP ? take_map(rd, s, value)
                                       : take_value(rd, s, value);
    if (strchr(name, '.') == NULL && is_section(full)) {
        if (value->type != YAML_MAPPING_NODE)
            return FAIL_AT(rd, value->start_mark, "'%s' is %s; a mapping belongs here", full,
                           node_type(value));
        strncat(full, ".", sizeof full - strlen(full) - 1);
        return walk(rd, full, value);
    }
    char known[512];
    list_keys(prefix, known, sizeof known);
    return FAIL_AT(rd, key->start_mark, "unknown key '%s%.100s'; known here: %s", prefix, name,
                   known);
}

static enum k3_status check_twice(struct reader *rd, const yaml_node_t *map,
                                  const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(&rd->doc, pair->key);
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < pair; p++) {
        const yaml_node_t *other = yaml_document_get_node(&rd->doc, p->key);
        if (key->type == YAML_SCALAR_NODE && other->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value,
                   (const char *)other->data.scalar.value) == 0)
            return FAIL_AT(rd, key->start_mark, "key '%s' is given twice, first in line %zu",
                           (const char *)key->data.scalar.value, other->start_mark.line + 1);
    }
    return K3_OK;
}

static enum k3_status walk(struct reader *rd, const char *prefix, const yaml_node_t *map)
{
    const yaml_node_pair_t *end = map->data.mapping.pairs.top;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < end; p++) {
        if (check_twice(rd, map, p) != K3_OK ||
            take_pair(rd, prefix, yaml_document_get_node(&rd->doc, p->key),
                      yaml_document_get_node(&rd->doc, p->value)) != K3_OK)
            return rd->err->status;
    }
    return K3_OK;
}

/* What libyaml could not read. An encoding error has an offset only; the line is counted here. */
static enum k3_status fail_syntax(struct reader *rd, const yaml_parser_t *p, const char *text)
{
    yaml_mark_t at = p->problem_mark;
    if (p->error == YAML_READER_ERROR) {
        at.line = at.column = 0;
        for (size_t i = 0; i < p->problem_offset && text[i] != '\0'; i++) {
            at.column = text[i] == '\n' ? 0 : at.column + 1;
            at.line += text[i] == '\n';
        }
    }
    if (p->error == YAML_MEMORY_ERROR)
        return k3_fail_memory(rd->err, rd->path, PROFILE_MAX_BYTES);
    return FAIL_AT(rd, at, "no valid YAML: %s", p->problem == NULL ? "unknown" : p->problem);
}

/* One document and no second one. An empty file is a profile that sets nothing. */
static enum k3_status read_document(struct reader *rd, yaml_parser_t *p, const char *text)
{
    if (!yaml_parser_load(p, &rd->doc))
        return fail_syntax(rd, p, text);
    enum k3_status status = K3_OK;
    const yaml_node_t *root = yaml_document_get_root_node(&rd->doc);
    if (root != NULL && root->type == YAML_MAPPING_NODE)
        status = walk(rd, "", root);
    else if (root != NULL && (root->type != YAML_SCALAR_NODE || root->data.scalar.length > 0))
        status = FAIL_AT(rd, root->start_mark, "a profile is a mapping of keys, this is %s",
                         node_type(root));
    yaml_document_delete(&rd->doc);
    if (root == NULL || status != K3_OK)
        return status;
    if (!yaml_parser_load(p, &rd->doc))
        return fail_syntax(rd, p, text);
    root = yaml_document_get_root_node(&rd->doc);
    if (root != NULL)
        status = FAIL_AT(rd, root->start_mark, "a second document in one profile");
    yaml_document_delete(&rd->doc);
    return status;
}

/* "conf/laptop.yaml" -> "laptop": what a profile is called unless it has a name. */
static enum k3_status name_after_file(struct request *r, const char *path, struct k3_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    const char *dot = strrchr(base, '.');
    char *stem = path_format(err, "%.*s", dot == NULL ? 255 : (int)(dot - base), base);
    if (stem == NULL)
        return err->status;
    const char *kept = run_config_keep(&r->run, stem, err);
    free(stem);
    if (kept == NULL)
        return err->status;
    r->run.profile_name = kept;
    return K3_OK;
}

enum k3_status profile_load(struct request *r, const char *path, struct k3_error *err)
{
    size_t len = 0;
    char *text = path_read_file(path, PROFILE_MAX_BYTES, &len, err);
    if (text == NULL)
        return k3_fail_in(err, "profile");
    struct reader rd = {.r = r, .path = path, .err = err};
    yaml_parser_t parser;
    enum k3_status status = name_after_file(r, path, err);
    if (status == K3_OK && !yaml_parser_initialize(&parser)) {
        status = k3_fail_memory(err, path, sizeof parser);
    } else if (status == K3_OK) {
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
        status = read_document(&rd, &parser, text);
        yaml_parser_delete(&parser);
    }
    free(text);
    return status;
}
