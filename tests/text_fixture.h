/* text_fixture.h - model folders for the text tests. */
#ifndef K3_TEXT_FIXTURE_H
#define K3_TEXT_FIXTURE_H

#include "../engine/text/buf.h"
#include "../engine/text/tokenizer.h"

/* A tiktoken.model with the 256 single bytes as ranks 0 .. 255, a line each. */
void fixture_bytes_model(struct k3_buf *out);
/* Appends a line for the token p[0..len). */
void fixture_add_token(struct k3_buf *out, const char *p, size_t len, unsigned rank);

/* A scratch folder holding the two files; a NULL text leaves the file out. Ends the test program
 * when it cannot be made. The caller removes it with fixture_remove(), which frees the path. */
char *fixture_folder(const struct k3_buf *model, const char *config);
void fixture_remove(char *dir);

/* The tokenizer of the project's own vectors; ends the test program when it does not load. */
k3_tokenizer *fixture_mini(void);
/* One made from these texts, its folder removed again. */
k3_tokenizer *fixture_open(const struct k3_buf *model, const char *config);

#endif
