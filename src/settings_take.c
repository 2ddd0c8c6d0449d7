/* settings_take.c - how values are read, whatever they are for; see settings_internal.h. */
#include <config.h>

#include "settings_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "size.h"

enum k3_status settings_bad(struct k3_error *err, const char *value, const char *why)
{
    return k3_fail(err, K3_USAGE, "'%s' is %s", value, why);
}

enum k3_status settings_keep(struct request *r, const char *value, const char **out,
                             struct k3_error *err)
{
    if (value[0] == '\0')
        return k3_fail(err, K3_USAGE, "the value is empty");
    *out = run_config_keep(&r->run, value, err);
    return *out == NULL ? err->status : K3_OK;
}

bool settings_is_auto(const char *value)
{
    return strcmp(value, "auto") == 0;
}

enum k3_status settings_u64(const char *value, uint64_t min, uint64_t max, uint64_t *out,
                               struct k3_error *err)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long v = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0')
        return settings_bad(err, value, "not a whole number");
    if (errno == ERANGE || v < min || v > max)
        return k3_fail(err, K3_USAGE, "'%s' is out of range: %llu to %llu are possible", value,
                       (unsigned long long)min, (unsigned long long)max);
    *out = v;
    return K3_OK;
}

enum k3_status settings_u32(const char *value, uint32_t min, uint32_t max, uint32_t *out,
                            struct k3_error *err)
{
    uint64_t v = 0;
    if (settings_u64(value, min, max, &v, err) != K3_OK)
        return err->status;
    *out = (uint32_t)v;
    return K3_OK;
}

enum k3_status settings_u32_auto(const char *value, uint32_t max, uint32_t *out,
                                    struct k3_error *err)
{
    if (settings_is_auto(value)) {
        *out = 0;
        return K3_OK;
    }
    return settings_u32(value, 1, max, out, err);
}

enum k3_status settings_size(const char *value, uint64_t min, uint64_t *out,
                                struct k3_error *err)
{
    const char *why = NULL;
    uint64_t bytes = 0;
    if (!size_parse(value, &bytes, &why))
        return settings_bad(err, value, why);
    if (bytes < min)
        return k3_fail(err, K3_USAGE, "'%s' is too small: at least %llu bytes", value,
                       (unsigned long long)min);
    *out = bytes;
    return K3_OK;
}

enum k3_status settings_real(const char *value, double *out, struct k3_error *err)
{
    char *end = NULL;
    const double v = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(v))
        return settings_bad(err, value, "not a number");
    *out = v;
    return K3_OK;
}

enum k3_status settings_word(const char *value, const struct word *words, size_t n, int *out,
                                struct k3_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(value, words[i].name) == 0) {
            *out = words[i].value;
            return K3_OK;
        }
    }
    char list[256] = "";
    for (size_t i = 0; i < n; i++) {
        strncat(list, i == 0 ? "" : i + 1 < n ? ", " : " or ", sizeof list - strlen(list) - 1);
        strncat(list, words[i].name, sizeof list - strlen(list) - 1);
    }
    return k3_fail(err, K3_USAGE, "'%s' is not known: say %s", value, list);
}
