/* cmd_verify.c - see cmd_verify.h. */
#include <config.h>

#include "cmd_verify.h"

#include <stdio.h>
#include <unistd.h>

#include "../engine/storage/blocks.h"
#include "../engine/storage/checkpoint.h"
#include "../engine/text/tokenizer.h"
#include "options.h"
#include "size.h"
#include "verify_sums.h"

static void on_progress(void *ud, const char *what, uint64_t done, uint64_t total)
{
    (void)ud;
    if (isatty(STDERR_FILENO) != 0)
        fprintf(stderr, "\r\033[K%s: %llu of %llu%s", what, (unsigned long long)done,
                (unsigned long long)total, done == total ? "\r\033[K" : "");
}

static enum k3_status check_shards(const char *dir, struct k3_error *err)
{
    char size[32];
    struct k3_checkpoint *c = k3_checkpoint_open(dir, on_progress, NULL, err);
    if (c == NULL)
        return err->status;
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n_shards; i++)
        bytes += c->shards[i].size;
    printf("%zu files, %zu tensors, %s: headers, sizes and index agree\n", c->n_shards,
           c->n_tensors, size_format(size, sizeof size, bytes));
    k3_checkpoint_close(c);
    return K3_OK;
}

/* Everything that is checked when a model is opened, without the memory to run it. */
static enum k3_status check_tensors(const char *dir, struct k3_error *err)
{
    struct k3_options opt;
    k3_options_init(&opt);
    opt.model_dir = dir;
    opt.budget = 1000000000000000; /* verifying must not depend on this machine's memory */
    k3_engine *e = k3_open(&opt, on_progress, NULL, err);
    if (e == NULL)
        return err->status;
    const struct k3_plan *p = k3_get_plan(e);
    printf("every tensor that config.json calls for is there in its shape and type: %u layers, "
           "%u of them with %u experts\n",
           (unsigned)p->layers, (unsigned)p->moe_layers, (unsigned)p->n_experts);
    k3_close(e);
    return K3_OK;
}

static enum k3_status check_tokenizer(const char *dir, struct k3_error *err)
{
    k3_tokenizer *t = k3_tokenizer_open(dir, err);
    if (t == NULL)
        return err->status;
    printf("the tokenizer is whole: %zu tokens and 256 special ones\n", k3_tokenizer_ranks(t));
    k3_tokenizer_close(t);
    return K3_OK;
}

/* Of what the shards are now. */
static enum k3_status write_blocks(const char *dir, struct k3_error *err)
{
    struct k3_checkpoint *c = k3_checkpoint_open(dir, on_progress, NULL, err);
    if (c == NULL)
        return err->status;
    const enum k3_status st = k3_blocks_write(c, on_progress, NULL, err);
    if (st == K3_OK)
        printf("%s/%s is written: run with --check-reads to compare every read with it\n", dir,
               K3_BLOCKS_FILE);
    k3_checkpoint_close(c);
    return st;
}

/* All checks are made, so that one run tells everything; the first failure's status stands. */
static int verify(const char *dir, const struct verify_request *ask)
{
    enum k3_status (*const checks[])(const char *, struct k3_error *) = {
        check_shards, check_tensors, check_tokenizer};
    int status = 0;
    bool shards = true;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        struct k3_error err = {0};
        if (checks[i](dir, &err) == K3_OK)
            continue;
        fflush(stdout);
        report_error(&err);
        if (status == 0)
            status = (int)err.status;
        if (i == 0) { /* the tensors cannot be looked at */
            shards = false;
            i++;
        }
    }
    const bool contents = ask->sha256 || ask->write_sums;
    if (status == 0 && !contents && !ask->write_blocks)
        puts("nothing is missing; the contents of the tensors were not read (--sha256 does)");
    if (status != 0 && !contents)
        verify_print_missing(dir);
    /* Damaged headers are a reason to look at the contents, not to leave it. */
    struct k3_error err = {0};
    fflush(stdout);
    if (contents && verify_sums(dir, ask, &err) != K3_OK) {
        fflush(stdout);
        report_error(&err);
        if (status == 0 || err.status == K3_CANCELLED)
            status = (int)err.status;
    }
    if (shards && ask->write_blocks && write_blocks(dir, &err) != K3_OK)
        status = report_error(&err);
    return status;
}

int cmd_verify(int argc, char **argv)
{
    struct request r;
    struct k3_error err = {0};
    int status = 0;
    const enum options_result what = options_parse(argc, argv, FOR_VERIFY, &r, &err);
    if (what == OPTIONS_HELP) {
        puts("Usage: k3chat verify --model DIR [--sha256 [LIST]]\n\nChecks that a checkpoint is "
             "whole: files, sizes, headers, index, every tensor\nthe config calls for, and the "
             "tokenizer; with --sha256 also what is in the files.\nWhat has been read is remembered, "
             "so that a run that is stopped can go on.\n");
        options_print(stdout, FOR_VERIFY, 0);
    } else if (what == OPTIONS_VERSION) {
        version_print(stdout);
    } else if (what == OPTIONS_RUN && r.run.engine.model_dir != NULL) {
        status = verify(r.run.engine.model_dir, &r.verify);
    } else {
        if (what == OPTIONS_RUN)
            k3_fail(&err, K3_USAGE, "verify needs --model DIR");
        status = report_error(&err);
    }
    request_free(&r);
    return status;
}
