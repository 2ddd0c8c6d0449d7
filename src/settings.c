/* settings.c - see settings.h. */
#include <config.h>

#include "settings.h"

#include <string.h>

#include "settings_internal.h"

void request_init(struct request *r)
{
    memset(r, 0, sizeof *r);
    run_config_init(&r->run);
    settings_files_init(r);
}

void request_free(struct request *r)
{
    run_config_free(&r->run);
}

/* ---- the table --------------------------------------------------------------------------- */

#define ANY (FOR_BOTH | FOR_DOCTOR)

const struct setting settings[] = {
    {"model", "model.path", "DIR", "checkpoint in the released layout (none: the demo model)",
     ANY | FOR_VERIFY, SHAPE_PATH, set_model},
    {"profile", NULL, "NAME", "profile: a name, or a YAML file (with a '/' or ending in .yaml)",
     ANY, SHAPE_ONE, set_profile},
    {NULL, "name", "NAME", "what the screen calls this profile", 0, SHAPE_ONE, set_name},
    {"budget", "memory.budget", "SIZE", "memory the whole process may use: 8GB, 8GiB, 500MB ...",
     ANY, SHAPE_ONE, set_budget},
    {"context", "memory.context", "N", "positions to have room for (4096)", ANY, SHAPE_ONE,
     set_context},
    {"threads", "compute.threads", "N", "compute threads (the physical cores)", ANY, SHAPE_ONE,
     set_threads},
    {"chunk", "compute.chunk", "N", "tokens of a prompt that are read together", ANY, SHAPE_ONE,
     set_chunk},
    {"isa", "compute.isa", "SET", "kernels: auto, scalar, avx2, avx512 or neon", ANY, SHAPE_ONE,
     set_isa},
    {"io", "io.backend", "KIND", "reading: auto, uring, direct or buffered", ANY, SHAPE_ONE,
     set_io},
    {"depth", "io.depth", "N", "reads in flight per disk (16)", ANY, SHAPE_ONE, set_depth},
    {"ring", "memory.ring", "SIZE", "memory for trunk blocks on their way (auto)", ANY, SHAPE_ONE,
     set_ring},
    {"experts", "memory.experts", "SIZE", "memory for resident experts (auto)", ANY, SHAPE_ONE,
     set_experts},
    {"expert-policy", NULL, "NAME", "which experts stay: quota or lru", ANY, SHAPE_ONE, set_policy},
    {"simulate-disk", NULL, "RATE", "read no faster than RATE bytes a second (300MB)", ANY,
     SHAPE_ONE, set_simulate},
    {"check-reads", NULL, NULL, "compare what is read with the checkpoint's list of blocks", ANY,
     SHAPE_ONE, set_check_reads},
    {"thinking", "generation.thinking", "EFFORT", "off, low, high or max (max)", FOR_BOTH,
     SHAPE_ONE, set_thinking},
    {"temperature", "generation.temperature", "X", "draw at this temperature; 0 is greedy",
     FOR_BOTH, SHAPE_ONE, set_temperature},
    {"top-p", "generation.top_p", "P", "draw from the smallest set of this probability", FOR_BOTH,
     SHAPE_ONE, set_top_p},
    {"top-k", "generation.top_k", "N", "draw from the N most likely (0: all)", FOR_BOTH, SHAPE_ONE,
     set_top_k},
    {"min-p", "generation.min_p", "P", "leave out what is less likely than P times the likeliest",
     FOR_BOTH, SHAPE_ONE, set_min_p},
    {"repetition-penalty", "generation.repetition_penalty", "X",
     "make tokens that are there already less likely (1: off)", FOR_BOTH, SHAPE_ONE, set_penalty},
    {"seed", "generation.seed", "N", "draw with this seed (0); the same seed, the same answer",
     FOR_BOTH, SHAPE_ONE, set_seed},
    {"max-tokens", "generation.max_tokens", "N", "longest answer (chat 1024, batch 64)", FOR_BOTH,
     SHAPE_ONE, set_max_tokens},
    {"session", NULL, "NAME", "transcript to continue or create", FOR_BOTH, SHAPE_ONE, set_session},
    {"temporary", NULL, NULL, "a chat that is written to no file and is gone when it is left",
     FOR_CHAT, SHAPE_ONE, set_temporary},

    {"states", "session.states", "N", "saved states of a session that stay on disk (3); 0: none",
     FOR_BOTH, SHAPE_ONE, set_states},
    {"state-disk", "session.state_disk", "SIZE", "disk for the states of all sessions (8GB)",
     FOR_BOTH, SHAPE_ONE, set_state_disk},
    {"state-every", "session.state_every", "MINUTES",
     "save the state within an answer that often (30); 0: at its end only", FOR_BOTH, SHAPE_ONE,
     set_state_every},
    {"ask-reread", "session.ask_reread", "SECONDS",
     "ask before reading again what takes longer (60); 0: never ask", FOR_CHAT, SHAPE_ONE,
     set_ask_reread},
    {NULL, "session.sync", "WHEN", "sync the transcript with: messages, partials or never", 0,
     SHAPE_ONE, set_sync},

    {"batch", NULL, NULL, "one run without a screen", FOR_BATCH, SHAPE_ONE, set_batch},
    {"ids", NULL, "1,2,3", "prompt as token ids; no tokenizer is loaded", FOR_BATCH, SHAPE_ONE,
     set_ids},
    {"ids-file", NULL, "FILE", "the same from a file", FOR_BATCH, SHAPE_ONE, set_ids_file},
    {"prompt", NULL, "TEXT", "plain text to continue", FOR_BATCH, SHAPE_ONE, set_prompt_text},
    {"prompt-file", NULL, "FILE", "the same from a file", FOR_BATCH, SHAPE_ONE, set_prompt_file},
    {"chat", NULL, "FILE", "messages to answer: one JSON object per line, or a JSON array",
     FOR_BATCH, SHAPE_ONE, set_chat},
    {"continue", NULL, NULL, "go on with the last answer of --session, or answer its last message",
     FOR_BATCH, SHAPE_ONE, set_continue},
    {"ignore-stop", NULL, NULL, "go on past the stop ids", FOR_BATCH, SHAPE_ONE, set_ignore_stop},
    {"teacher-force", NULL, NULL, "no generation: the most likely id after every position",
     FOR_BATCH, SHAPE_ONE, set_teacher_force},
    {"logits", NULL, "FILE", "logits, little-endian fp32, a row for each computed position",
     FOR_BATCH, SHAPE_ONE, set_logits},
    {"json", NULL, "FILE", "the result as JSON; - is stdout instead of the text", FOR_BATCH,
     SHAPE_ONE, set_json},
    {"trace", NULL, "FILE", "the experts asked for, in order", FOR_BATCH, SHAPE_ONE, set_trace},
    {"dump-routing", NULL, NULL, "adds each position's experts to the JSON", FOR_BATCH, SHAPE_ONE,
     set_dump_routing},

    {"measure", NULL, "SIZE", "measure the disk with a temporary file of this size", FOR_DOCTOR,
     SHAPE_ONE, set_measure},

    {"plain", NULL, NULL, "lines of text instead of a screen: for screen readers, simple terminals, pipes",
     FOR_CHAT, SHAPE_ONE, set_plain},
    {NULL, "ui.mode", "NAME", "full or plain (see --plain)", 0, SHAPE_ONE, set_mode},
    {NULL, "ui.theme", "NAME", "auto, dark, light or mono", 0, SHAPE_ONE, set_theme},
    {NULL, "ui.graph", "NAME", "auto, braille, block or ascii", 0, SHAPE_ONE, set_graph},
    {NULL, "ui.notify", "NAME", "auto, bell, osc, osc777 or off", 0, SHAPE_ONE, set_notify},
    {NULL, "ui.mouse", "NAME", "off, or wheel: it scrolls; the terminal selects with Shift then", 0,
     SHAPE_ONE, set_mouse},
    {NULL, "ui.history", "WHETHER", "on or off: keep what is typed for later starts", 0, SHAPE_ONE,
     set_history},
    {NULL, "ui.panes", "LIST", "panes in order: timing, disk, hits, experts, memory", 0, SHAPE_LIST,
     set_pane},
    {NULL, "keys", "NAME: KEY", "keys of the screen: for each action one, a list, or none", 0,
     SHAPE_MAP, set_key},

    {"sha256", NULL, "[LIST]",
     "also read every file and compare its SHA-256 with a list (DIR/SHA256SUMS)", FOR_VERIFY,
     SHAPE_ONE, set_sha256},
    {"write-sums", NULL, "[LIST]", "read every file and write such a list", FOR_VERIFY, SHAPE_ONE,
     set_write_sums},
    {"write-blocks", NULL, NULL, "read every shard and write the list for --check-reads", FOR_VERIFY,
     SHAPE_ONE, set_write_blocks},
    {"afresh", NULL, NULL, "read again what an earlier run has read", FOR_VERIFY, SHAPE_ONE,
     set_afresh},

    {"endpoint", NULL, "URL",
     "server of the repository (HF_ENDPOINT, else https://huggingface.co)", FOR_FETCH, SHAPE_ONE,
     set_endpoint},
    {"revision", NULL, "NAME", "branch, tag or commit of the repository (main)", FOR_FETCH,
     SHAPE_ONE, set_revision},
    {"sums", NULL, "LIST",
     "SHA-256 sums that the files must have (FOLDER/SHA256SUMS, else the server's)", FOR_FETCH,
     SHAPE_ONE, set_sums},
    {"connections", NULL, "N", "files that are fetched side by side (4)", FOR_FETCH, SHAPE_ONE,
     set_connections},
    {"retries", NULL, "N", "tries in a row without a byte before a file is given up (8)", FOR_FETCH,
     SHAPE_ONE, set_retries},
    {"retry-wait", NULL, "SECONDS", "pause before the first of them; it doubles up to a minute (1)",
     FOR_FETCH, SHAPE_ONE, set_retry_wait},
    {"timeout", NULL, "SECONDS", "silence after which a connection counts as cut (60)", FOR_FETCH,
     SHAPE_ONE, set_timeout},
    {"dry-run", NULL, NULL, "fetch the index only, and say what else there is to fetch", FOR_FETCH,
     SHAPE_ONE, set_dry_run},
};
const size_t n_settings = sizeof settings / sizeof settings[0];
