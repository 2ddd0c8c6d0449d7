/* k3_error.h - how errors travel: a status, and one sentence for a person.
 *
 * A function that can fail takes a struct k3_error * (never NULL) and returns the same status that
 * it stores there. Messages name the file, the field, the value and what to do; they end without a
 * line break. Nothing in the engine prints or exits. */
#ifndef K3_ERROR_H
#define K3_ERROR_H

#ifdef __GNUC__
#define K3_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define K3_PRINTF(f, a)
#endif

/* The values are the exit statuses of the program (see docs/guide.md). */
enum k3_status {
    K3_OK = 0,
    K3_FAILED = 1,      /* I/O, memory, a tensor missing or wrong */
    K3_USAGE = 2,       /* usage, profile or config not understood */
    K3_UNSOUND = 4,     /* bytes could not be read intact after output had been produced from them */
    K3_CANCELLED = 130, /* k3_cancel() was honoured */
};

struct k3_error {
    enum k3_status status;
    char message[2048];
};

/* Stores status and message (cut to fit, never inside a UTF-8 character); returns status. */
enum k3_status k3_fail(struct k3_error *err, enum k3_status status, const char *fmt, ...)
    K3_PRINTF(3, 4);

/* Puts "text: " before the message already there; returns its status. */
enum k3_status k3_fail_in(struct k3_error *err, const char *fmt, ...) K3_PRINTF(2, 3);

/* The message for a failed allocation of `bytes` for `what`. */
enum k3_status k3_fail_memory(struct k3_error *err, const char *what, unsigned long long bytes);

#endif
