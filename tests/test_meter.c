/* test_meter.c - the line that tells how far a long piece of work is. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../src/meter.h"

static void expect(uint64_t done, uint64_t total, double rate, int columns, const char *want)
{
    struct meter m;
    char text[256];
    meter_init(&m);
    meter_begin(&m, "fetching", total, 96);
    atomic_store(&m.done, done);
    atomic_store(&m.files_done, 3);
    assert_string_equal(meter_text(&m, rate, columns, text, sizeof text), want);
    meter_end(&m);
}

static void expect_line(uint64_t done, uint64_t total, double rate, const char *want)
{
    expect(done, total, rate, (int)strlen(want), want);
}

static void it_tells_amounts_rate_and_time_left(void **state)
{
    (void)state;
    expect_line(UINT64_C(12300000000), UINT64_C(1560000000000), 95e6,
                "fetching 12.3 GB of 1.56 TB (0.8 %), 95.0 MB/s, 4:31:32 left, 3 of 96 files");
    expect_line(500, 1000, 100, "fetching 500 B of 1.00 kB (50.0 %), 100 B/s, 0:05 left, "
                                "3 of 96 files");
}

static void it_tells_no_more_than_it_knows(void **state)
{
    (void)state;
    expect_line(500, 1000, -1, "fetching 500 B of 1.00 kB (50.0 %), 3 of 96 files");
    expect_line(500, 1000, 0, "fetching 500 B of 1.00 kB (50.0 %), 0 B/s, 3 of 96 files");
    expect_line(1000, 1000, 100, "fetching 1.00 kB of 1.00 kB (100.0 %), 100 B/s, 3 of 96 files");
    expect_line(0, 0, -1, "fetching, 3 of 96 files");
    /* 300 years are not worth telling. */
    expect_line(0, UINT64_C(1000000000000), 100, "fetching 0 B of 1.00 TB (0.0 %), 100 B/s, "
                                                 "3 of 96 files");
}

static void a_narrow_terminal_gets_what_matters(void **state)
{
    (void)state;
    expect(500, 1000, 100, 50, "50.0 %, 100 B/s, 0:05 left");
    expect(500, 1000, -1, 20, "50.0 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_tells_amounts_rate_and_time_left),
        cmocka_unit_test(it_tells_no_more_than_it_knows),
        cmocka_unit_test(a_narrow_terminal_gets_what_matters),
    };
    return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
