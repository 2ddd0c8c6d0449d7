/* profile_find.c - where a profile's name leads; see profile.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "profile.h"

enum { PLACE_USER, PLACE_INSTALLED, PLACE_ENV, PLACE_BESIDE, PLACE_ABOVE, N_PLACES };

static bool is_path(const char *name)
{
    const size_t n = strlen(name);
    return strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(name + n - 4, ".yml") == 0);
}

/* The folder of one place, or NULL when there is none. */
static char *place_dir(int place, struct k3_error *err)
{
    if (place == PLACE_USER)
        return path_config_dir(err);
    if (place == PLACE_INSTALLED)
        return path_format(err, "%s", K3_PROFILE_DIR);
    if (place == PLACE_ENV) {
        const char *conf = getenv("K3CHAT_CONF");
        return conf == NULL || conf[0] == '\0' ? NULL : path_format(err, "%s", conf);
    }
    char *dir = path_program_dir(err);
    char *conf = NULL;
    if (dir != NULL)
        conf = path_format(err, place == PLACE_BESIDE ? "%s/conf" : "%s/../conf", dir);
    free(dir);
    return conf;
}

/* The file of that name in the first place that has it; NULL = in none. */
static char *search(const char *name, int first, int last, struct k3_error *err)
{
    for (int place = first; place <= last; place++) {
        char *dir = place_dir(place, err);
        char *path = dir == NULL ? NULL : path_format(err, "%s/%s.yaml", dir, name);
        free(dir);
        if (path != NULL && path_is_file(path))
            return path;
        free(path);
    }
    return NULL;
}

static void fail_not_found(const char *name, struct k3_error *err)
{
    struct k3_error unused;
    char *user = path_config_dir(&unused);
    const char *conf = getenv("K3CHAT_CONF");
    k3_fail(err, K3_USAGE,
            "there is no profile '%s': no %s.yaml in %s, %s%s%s or a folder conf beside the "
            "program",
            name, name, user == NULL ? "~/.config/k3chat" : user, K3_PROFILE_DIR,
            conf == NULL ? "" : ", ", conf == NULL ? "" : conf);
    free(user);
}

char *profile_find(const char *name, struct k3_error *err)
{
    if (is_path(name))
        return path_format(err, "%s", name);
    char *path = NULL;
    if (name[0] != '\0' && name[0] != '.')
        path = search(name, PLACE_USER, N_PLACES - 1, err);
    if (path == NULL)
        fail_not_found(name, err);
    return path;
}

enum k3_status profile_load_for(struct request *r, const char *name, bool has_model,
                                struct k3_error *err)
{
    char *path = NULL;
    if (name != NULL) {
        path = profile_find(name, err);
        if (path == NULL)
            return err->status;
    } else {
        path = search("default", PLACE_USER, PLACE_USER, err);
        if (path == NULL && !has_model)
            path = search("demo", PLACE_USER, N_PLACES - 1, err);
        if (path == NULL)
            return K3_OK;
    }
    const enum k3_status status = profile_load(r, path, err);
    free(path);
    return status;
}
