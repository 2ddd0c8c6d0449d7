/* slurp.c - see slurp.h. */
#include <config.h>

#include "slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads size bytes; fewer are an error, since the file shrank. */
static enum k3_status read_all(int fd, const char *path, char *to, size_t size,
                               struct k3_error *err)
{
    size_t got = 0;
    while (got < size) {
        const ssize_t n = read(fd, to + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return k3_fail(err, K3_FAILED, "%s: cannot be read: %s", path, strerror(errno));
        if (n == 0)
            return k3_fail(err, K3_FAILED, "%s: ended after %zu of %zu bytes", path, got, size);
        got += (size_t)n;
    }
    return K3_OK;
}

char *k3_slurp(const char *path, size_t *size, struct k3_error *err)
{
    char *text = NULL;
    struct stat st;
    /* Not blocking, so that a pipe of that name is refused below rather than waited for. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        k3_fail(err, K3_FAILED, "%s: cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) != 0) {
        k3_fail(err, K3_FAILED, "%s: cannot be read: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        k3_fail(err, K3_FAILED, "%s: is not a regular file", path);
        goto out;
    }
    if ((uint64_t)st.st_size > K3_SLURP_MAX) {
        k3_fail(err, K3_FAILED, "%s: has %" PRIu64 " bytes; more than %" PRIu64 " are not read",
                path, (uint64_t)st.st_size, (uint64_t)K3_SLURP_MAX);
        goto out;
    }
    *size = (size_t)st.st_size;
    text = malloc(*size + 1);
    if (!text) {
        k3_fail_memory(err, path, *size + 1);
        goto out;
    }
    if (read_all(fd, path, text, *size, err) != K3_OK) {
        free(text);
        text = NULL;
        goto out;
    }
    text[*size] = '\0';
out:
    close(fd);
    return text;
}
