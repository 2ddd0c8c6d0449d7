/* text_fixture.c - see text_fixture.h. */
#include <config.h>

#include "text_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(99);
}

void fixture_add_token(struct k3_buf *out, const char *p, size_t len, unsigned rank)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        uint32_t w = 0;
        for (size_t k = 0; k < 3; k++)
            w = w << 8 | (i + k < len ? (unsigned char)p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            k3_buf_putc(out, i + k > len ? '=' : digits[w >> (18 - 6 * k) & 63]);
    }
    char tail[16];
    snprintf(tail, sizeof tail, " %u\n", rank);
    k3_buf_puts(out, tail);
}

void fixture_bytes_model(struct k3_buf *out)
{
    for (unsigned i = 0; i < 256; i++) {
        const char c = (char)i;
        fixture_add_token(out, &c, 1, i);
    }
}

static void write_file(const char *dir, const char *name, const char *text, size_t len)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text, 1, len, f) != len || fclose(f) != 0)
        die(path);
}

char *fixture_folder(const struct k3_buf *model, const char *config)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = malloc(4000);
    if (!dir)
        die("malloc");
    snprintf(dir, 4000, "%s/k3-text-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        die(dir);
    if (model)
        write_file(dir, "tiktoken.model", model->n ? model->v : "", model->n);
    if (config)
        write_file(dir, "tokenizer_config.json", config, strlen(config));
    return dir;
}

void fixture_remove(char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tiktoken.model", dir);
    remove(path);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    remove(path);
    rmdir(dir);
    free(dir);
}

static k3_tokenizer *open_or_die(const char *dir)
{
    struct k3_error err;
    k3_tokenizer *t = k3_tokenizer_open(dir, &err);
    if (!t) {
        fprintf(stderr, "%s\n", err.message);
        exit(99);
    }
    return t;
}

k3_tokenizer *fixture_mini(void)
{
    char path[4096];
    const char *src = getenv("K3_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/data/vectors/mini", src ? src : ".");
    return open_or_die(path);
}

k3_tokenizer *fixture_open(const struct k3_buf *model, const char *config)
{
    char *dir = fixture_folder(model, config);
    k3_tokenizer *t = open_or_die(dir);
    fixture_remove(dir);
    return t;
}
