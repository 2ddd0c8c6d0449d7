/* settings_internal.h - what the files of settings.h share: the functions that take the values, as the
 * table in settings.c names them, and how values are read. */
#ifndef K3CHAT_SETTINGS_INTERNAL_H
#define K3CHAT_SETTINGS_INTERNAL_H

#include "settings.h"

#define SETTINGS_CONTEXT_MAX (1u << 24) /* positions */

/* ---- how values are read (settings_take.c) ------------------------------------------------- */
/* Each fails with K3_USAGE and what is wrong with the value alone. */

/* "'VALUE' is WHY" */
enum k3_status settings_bad(struct k3_error *err, const char *value, const char *why);
/* The value, copied: empty ones are refused. */
enum k3_status settings_keep(struct request *r, const char *value, const char **out,
                             struct k3_error *err);
bool settings_is_auto(const char *value);
enum k3_status settings_u64(const char *value, uint64_t min, uint64_t max, uint64_t *out,
                            struct k3_error *err);
enum k3_status settings_u32(const char *value, uint32_t min, uint32_t max, uint32_t *out,
                            struct k3_error *err);
/* From 1 on, or "auto" for the default (0). */
enum k3_status settings_u32_auto(const char *value, uint32_t max, uint32_t *out,
                                 struct k3_error *err);
/* Bytes: 8GB, 8GiB, 500MB ... */
enum k3_status settings_size(const char *value, uint64_t min, uint64_t *out, struct k3_error *err);
enum k3_status settings_real(const char *value, double *out, struct k3_error *err);

struct word {
    const char *name;
    int value;
};
/* One of a few words; the message lists them. */
enum k3_status settings_word(const char *value, const struct word *words, size_t n, int *out,
                             struct k3_error *err);
#define TAKE_WORD(value, words, out, err) \
    settings_word(value, words, sizeof(words) / sizeof(words)[0], out, err)

/* ---- what takes them: see setting.take ----------------------------------------------------- */

#define SETTER(name) enum k3_status name(struct request *r, const char *v, struct k3_error *err)

/* settings_engine.c */
SETTER(set_model);
SETTER(set_profile);
SETTER(set_name);
SETTER(set_budget);
SETTER(set_context);
SETTER(set_threads);
SETTER(set_chunk);
SETTER(set_isa);
SETTER(set_io);
SETTER(set_depth);
SETTER(set_ring);
SETTER(set_experts);
SETTER(set_policy);
SETTER(set_simulate);
SETTER(set_check_reads);
SETTER(set_measure);

/* settings_answer.c */
SETTER(set_thinking);
SETTER(set_temperature);
SETTER(set_top_p);
SETTER(set_seed);
SETTER(set_top_k);
SETTER(set_min_p);
SETTER(set_penalty);
SETTER(set_max_tokens);
SETTER(set_temporary);
SETTER(set_session);
SETTER(set_states);
SETTER(set_state_disk);
SETTER(set_state_every);
SETTER(set_ask_reread);
SETTER(set_sync);

/* settings_batch.c */
SETTER(set_batch);
SETTER(set_ids);
SETTER(set_ids_file);
SETTER(set_prompt_text);
SETTER(set_prompt_file);
SETTER(set_chat);
SETTER(set_continue);
SETTER(set_ignore_stop);
SETTER(set_teacher_force);
SETTER(set_logits);
SETTER(set_json);
SETTER(set_trace);
SETTER(set_dump_routing);

/* settings_screen.c */
SETTER(set_plain);
SETTER(set_mode);
SETTER(set_theme);
SETTER(set_graph);
SETTER(set_notify);
SETTER(set_mouse);
SETTER(set_history);
SETTER(set_pane);
SETTER(set_key);

/* settings_files.c */
SETTER(set_sha256);
SETTER(set_write_sums);
SETTER(set_write_blocks);
SETTER(set_afresh);
SETTER(set_endpoint);
SETTER(set_revision);
SETTER(set_sums);
SETTER(set_connections);
SETTER(set_retries);
SETTER(set_retry_wait);
SETTER(set_timeout);
SETTER(set_dry_run);
/* The values of those that are not given. */
void settings_files_init(struct request *r);

#undef SETTER

#endif
