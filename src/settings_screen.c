/* settings_screen.c - values of the chat's screen. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "settings_internal.h"

enum k3_status set_plain(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->run.ui.plain = true;
    return K3_OK;
}

enum k3_status set_mode(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"full", 0}, {"plain", 1}};
    int m = 0;
    if (TAKE_WORD(v, words, &m, err) != K3_OK)
        return err->status;
    r->run.ui.plain = m != 0;
    return K3_OK;
}

enum k3_status set_theme(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", UI_THEME_AUTO},
                                        {"dark", UI_THEME_DARK},
                                        {"light", UI_THEME_LIGHT},
                                        {"mono", UI_THEME_MONO}};
    int t = 0;
    if (TAKE_WORD(v, words, &t, err) != K3_OK)
        return err->status;
    r->run.ui.theme = (enum ui_theme)t;
    return K3_OK;
}

enum k3_status set_graph(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", UI_GRAPH_AUTO},
                                        {"braille", UI_GRAPH_BRAILLE},
                                        {"block", UI_GRAPH_BLOCK},
                                        {"ascii", UI_GRAPH_ASCII}};
    int g = 0;
    if (TAKE_WORD(v, words, &g, err) != K3_OK)
        return err->status;
    r->run.ui.graph = (enum ui_graph)g;
    return K3_OK;
}

enum k3_status set_notify(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", UI_NOTIFY_AUTO},
                                        {"bell", UI_NOTIFY_BELL},
                                        {"osc", UI_NOTIFY_OSC},
                                        {"osc777", UI_NOTIFY_OSC777},
                                        {"off", UI_NOTIFY_OFF}};
    int n = 0;
    if (TAKE_WORD(v, words, &n, err) != K3_OK)
        return err->status;
    r->run.ui.notify = (enum ui_notify)n;
    return K3_OK;
}

enum k3_status set_mouse(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"off", 0}, {"wheel", 1}};
    int wheel = 0;
    if (TAKE_WORD(v, words, &wheel, err) != K3_OK)
        return err->status;
    r->run.ui.mouse = wheel != 0;
    return K3_OK;
}

enum k3_status set_history(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"on", 0}, {"off", 1}};
    int off = 0;
    if (TAKE_WORD(v, words, &off, err) != K3_OK)
        return err->status;
    r->run.ui.no_history = off != 0;
    return K3_OK;
}

enum k3_status set_pane(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {
        {"timing", 0}, {"disk", 1}, {"hits", 2}, {"experts", 3}, {"memory", 4}};
    int i = 0;
    if (TAKE_WORD(v, words, &i, err) != K3_OK)
        return err->status;
    if (r->run.ui.n_panes == UI_MAX_PANES)
        return k3_fail(err, K3_USAGE, "more than %d panes", UI_MAX_PANES);
    r->run.ui.panes[r->run.ui.n_panes++] = words[i].name;
    return K3_OK;
}

/* "NAME KEY"; the screen knows which there are. */
enum k3_status set_key(struct request *r, const char *v, struct k3_error *err)
{
    struct ui_config *ui = &r->run.ui;
    const char *blank = strchr(v, ' ');
    if (blank == NULL)
        return settings_bad(err, v, "a name and a key belong here");
    if (ui->n_keys == UI_MAX_KEYS)
        return k3_fail(err, K3_USAGE, "more than %d keys", UI_MAX_KEYS);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(blank - v), v);
    struct ui_key *k = &ui->keys[ui->n_keys];
    if (settings_keep(r, name, &k->action, err) != K3_OK ||
        settings_keep(r, blank + 1, &k->key, err) != K3_OK ||
        settings_keep(r, r->place == NULL ? "" : r->place, &k->where, err) != K3_OK)
        return err->status;
    ui->n_keys++;
    return K3_OK;
}
