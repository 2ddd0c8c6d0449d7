/* fuzz_transcript.c - fuzz target: the transcript reader. What it takes can be rendered or is refused
 * with a word, and its exports do not fail. make fuzz builds and runs it with libFuzzer. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/sessions.h"
#include "../src/transcript.h"
#include "fuzz.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void use(const struct conversation *c)
{
    struct k3_error err = {0};
    char title[64];
    FILE *null = fopen("/dev/null", "w");
    must(null != NULL);
    must(sessions_export(c, "name", "txt", null, &err) == K3_OK);
    must(sessions_export(c, "name", "md", null, &err) == K3_OK);
    must(strlen(sessions_title(c, 12, title, sizeof title)) < sizeof title);
    fclose(null);
    if (conversation_check(c, &err) != K3_OK)
        must(err.message[0] != '\0');
    for (size_t i = 0; i < c->n; i++) {
        must(c->v[i].body != NULL);
        must(i == 0 || c->v[i].id > c->v[i - 1].id);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct transcript_contents c;
    struct k3_error err = {0};
    char *text = malloc(size + 1);
    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (transcript_parse(text, size, "input", &c, &err) == K3_OK) {
        must(c.whole <= size && c.torn == (c.whole < size));
        use(&c.conversation);
        conversation_free(&c.conversation);
    } else {
        must(err.message[0] != '\0');
    }
    free(text);
    return 0;
}
