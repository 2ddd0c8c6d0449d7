/* program.h - runs the program under test as a child and collects what it says. */
#ifndef K3_TEST_PROGRAM_H
#define K3_TEST_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    int out, err;            /* our ends of its stdout and stderr; -1 when closed */
    char *out_text, *err_text; /* collected so far, zero-terminated */
    size_t out_len, err_len;
    int status;              /* exit status, or 128 + signal; valid after program_wait() */
};

/* Starts $K3_BUILDDIR/k3chat with these words (NULL ends them). out_path: stdout goes there instead
 * of a pipe. */
struct child program_start(const char *out_path, ...);
/* Collects until stdout (or, with err, stderr) holds the text; ends the test after two minutes. */
void program_wait_text(struct child *c, bool err, const char *text);
/* Collects until stdout holds so many bytes. */
void program_wait_bytes(struct child *c, size_t n);
/* Collects until the file exists and holds the text `times` times. */
void program_wait_file(struct child *c, const char *path, const char *text, unsigned times);
/* Collects for so long or to the end, whichever comes first; then SIGKILL. Reaps. */
void program_kill_after(struct child *c, double seconds);
/* Collects to the end and reaps. */
void program_wait(struct child *c);
void program_free(struct child *c);

#endif
