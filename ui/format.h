/* format.h - figures as people read them: always with a unit, never wider than they need. */
#ifndef K3CHAT_UI_FORMAT_H
#define K3CHAT_UI_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* All write into buf and return it; 16 bytes are enough. Unknown (negative, not finite) is "-". */
const char *fmt_seconds(char *buf, size_t size, double s);  /* "85 ms", "1.24 s", "130 s" */
const char *fmt_about(char *buf, size_t size, double s);    /* "0.3 s", "45 s", "38 min", "2.3 h", "3.1 d" */
const char *fmt_clock(char *buf, size_t size, double s);    /* "0:07", "24:10", "1:02:03" */
const char *fmt_bytes(char *buf, size_t size, double n);    /* "512 MB", "7.6 GB", "137 GB" */
const char *fmt_size(char *buf, size_t size, double n);     /* the same, "8 GB" without ".0" */
const char *fmt_rate(char *buf, size_t size, double per_s); /* "5.7 GB/s" */
const char *fmt_percent(char *buf, size_t size, double share); /* 0.182 -> "18 %" */
const char *fmt_percent1(char *buf, size_t size, double share); /* 0.182 -> "18.2 %" */
const char *fmt_count(char *buf, size_t size, uint64_t n);  /* "61", "8192", "12.3k", "1.2M" */
/* Local time of the day: "14:02"; with a date when it is not today. 32 bytes. Empty for 0. */
const char *fmt_when(char *buf, size_t size, int64_t time, int64_t now);

/* Writes part and whole, and cuts the unit of part where whole has the same: "7.5" and "8.0 GB". */
void fmt_bytes_of(char *part_buf, char *whole_buf, size_t size, double part, double whole);
/* The same for two rates: "401" and "500 kB/s". */
void fmt_rate_of(char *part_buf, char *whole_buf, size_t size, double part, double whole);

#endif
