/* fuzz_file.h - for fuzz targets whose code reads files: a folder of their own, gone at the end. */
#ifndef K3_FUZZ_FILE_H
#define K3_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Made at the first call; the path lives as long as the process. Aborts when it cannot be made. */
const char *fuzz_folder(void);
/* Writes the file of that name there and returns its path, valid until the next call. */
const char *fuzz_write(const char *name, const uint8_t *data, size_t size);

#endif
