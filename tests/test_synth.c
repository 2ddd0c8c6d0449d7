/* test_synth.c - the generator of checkpoints: same bytes always, the released layout, refusals. */
#include <config.h>

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

static char scratch[FIXTURE_PATH];

static int begin(void **state)
{
    (void)state;
    fixture_scratch(scratch);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fixture_scratch_end(scratch);
    return 0;
}

static void in_scratch(char path[FIXTURE_PATH], const char *name)
{
    fixture_join(path, scratch, name);
}

/* How many entries a folder has, hidden ones included. */
static size_t entries(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    size_t n = 0;
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* ---- bytes ------------------------------------------------------------------------------------- */

static void same_arguments_same_bytes(void **state)
{
    (void)state;
    char a[FIXTURE_PATH], b[FIXTURE_PATH], c[FIXTURE_PATH];
    in_scratch(a, "a");
    in_scratch(b, "b");
    in_scratch(c, "c");
    struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, a);
    fixture_write(&s, b);
    s.seed++;
    fixture_write(&s, c);
    assert_true(fixture_digest(a) == fixture_digest(b));
    assert_true(fixture_digest(a) != fixture_digest(c));
}

static void bytes_are_announced(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    in_scratch(dir, "m");
    const struct k3_synth s = fixture_preset("odd");
    fixture_write(&s, dir);
    json_t *index = fixture_json(dir, "model.safetensors.index.json");
    const json_t *total = json_object_get(json_object_get(index, "metadata"), "total_size");
    assert_int_equal(json_integer_value(total), k3_synth_bytes(&s));
    json_decref(index);
    /* The presets' sizes, as their descriptions promise. */
    const struct k3_synth tiny = fixture_preset("tiny"), full = fixture_preset("full");
    assert_true(k3_synth_bytes(&tiny) < 1500000);
    assert_true(k3_synth_bytes(&full) > 5500000000 && k3_synth_bytes(&full) < 7000000000);
}

/* ---- layout ------------------------------------------------------------------------------------ */

static int dtype_rank(const char *dtype)
{
    return strcmp(dtype, "F32") == 0 ? 0 : strcmp(dtype, "BF16") == 0 ? 1 : 2;
}

/* F32, BF16, U8, each by name; offsets without gaps; header padded to 8; no metadata. */
static void check_released_shard(const char *dir, const char *shard)
{
    size_t len;
    char *data = fixture_read(dir, shard, &len);
    uint64_t header;
    memcpy(&header, data, sizeof header);
    assert_int_equal(header % 8, 0);
    json_t *top = json_loadb(data + 8, (size_t)header, 0, NULL);
    assert_non_null(top);
    assert_null(json_object_get(top, "__metadata__"));
    const char *name, *before = "";
    json_t *entry;
    int rank = 0;
    json_int_t at = 0;
    json_object_foreach (top, name, entry) {
        const int r = dtype_rank(json_string_value(json_object_get(entry, "dtype")));
        assert_true(r > rank || (r == rank && strcmp(before, name) < 0));
        const json_t *offsets = json_object_get(entry, "data_offsets");
        assert_int_equal(json_integer_value(json_array_get(offsets, 0)), at);
        at = json_integer_value(json_array_get(offsets, 1));
        rank = r;
        before = name;
    }
    assert_int_equal(len, 8 + header + (uint64_t)at);
    json_decref(top);
    free(data);
}

static void released_layout(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    in_scratch(dir, "m");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, dir);
    for (uint32_t i = 1; i <= s.layers + 3; i++) {
        char shard[64];
        snprintf(shard, sizeof shard, "model-%05u-of-%06u.safetensors", i, s.layers + 3);
        check_released_shard(dir, shard);
    }
    /* A layer's trunk and an expert's six tensors are one run each; experts as 0, 1, 10, 2. */
    const char *const order[] = {
        "experts.0.w1.weight_packed", "experts.0.w1.weight_scale", "experts.0.w2.weight_packed",
        "experts.0.w2.weight_scale", "experts.0.w3.weight_packed", "experts.0.w3.weight_scale",
        "experts.1.w1.weight_packed"};
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        char name[160];
        snprintf(name, sizeof name, "language_model.model.layers.2.block_sparse_moe.%s", order[i]);
        const struct fixture_tensor t = fixture_find(dir, name);
        assert_true(i == 0 || t.begin == at);
        at = t.end;
    }
}

static void scattered_layout(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    in_scratch(dir, "m");
    struct k3_synth s = fixture_preset("tiny");
    s.scatter = 2;
    fixture_write(&s, dir);
    bool apart = false;
    for (int x = 0; x < 10; x++) {
        char codes[160], scales[160];
        const char *form = "language_model.model.layers.1.block_sparse_moe.experts.%d.w1.weight_%s";
        snprintf(codes, sizeof codes, form, x, "packed");
        snprintf(scales, sizeof scales, form, x, "scale");
        const struct fixture_tensor a = fixture_find(dir, codes), b = fixture_find(dir, scales);
        assert_string_equal(a.shard, b.shard); /* one expert never lies in two files */
        apart = apart || (a.end != b.begin && b.end != a.begin);
    }
    assert_true(apart);
}

/* ---- refusals ---------------------------------------------------------------------------------- */

static void impossible_geometry(void **state)
{
    (void)state;
    struct k3_synth s = fixture_preset("tiny");
    s.latent = 48;
    s.top_k = 11;
    s.kda_heads = 17;
    s.hidden = 0;
    struct k3_error err;
    char dir[FIXTURE_PATH];
    in_scratch(dir, "m");
    assert_int_equal(k3_synth_write(&s, dir, NULL, NULL, &err), K3_USAGE);
    assert_non_null(strstr(err.message, "hidden is 0"));
    assert_non_null(strstr(err.message, "latent is 48, must be a multiple of 32"));
    assert_non_null(strstr(err.message, "top-k is 11, more than the 10 experts"));
    assert_non_null(strstr(err.message, "kda-heads is 17"));
    assert_int_equal(entries(scratch), 0);
    assert_int_equal(k3_synth_bytes(&s), 0);
}

static void existing_folder_is_kept(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    in_scratch(dir, "m");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, dir);
    const uint64_t before = fixture_digest(dir);
    struct k3_error err;
    assert_int_equal(k3_synth_write(&s, dir, NULL, NULL, &err), K3_FAILED);
    assert_non_null(strstr(err.message, dir));
    assert_non_null(strstr(err.message, "not empty"));
    assert_true(fixture_digest(dir) == before);
    assert_int_equal(entries(scratch), 1);
    char nowhere[FIXTURE_PATH];
    in_scratch(nowhere, "no/such/place");
    assert_int_equal(k3_synth_write(&s, nowhere, NULL, NULL, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "No such file or directory"));
}

/* The disk is full half-way: nothing stays behind. */
static void full_disk_leaves_nothing(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    in_scratch(dir, "m");
    const struct k3_synth s = fixture_preset("tiny");
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {.rlim_cur = 150000, .rlim_max = old.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct k3_error err = {.status = K3_OK};
    const enum k3_status st = k3_synth_write(&s, dir, NULL, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(st, K3_FAILED);
    assert_non_null(strstr(err.message, "cannot write"));
    assert_non_null(strstr(err.message, "File too large"));
    assert_int_equal(entries(scratch), 0);
}

static void fields_by_name(void **state)
{
    (void)state;
    struct k3_synth s = fixture_preset("tiny");
    assert_ptr_equal(k3_synth_field(&s, "layers"), &s.layers);
    assert_ptr_equal(k3_synth_field(&s, "v-dim"), &s.v_dim);
    assert_ptr_equal(k3_synth_field(&s, "seed"), &s.seed);
    assert_null(k3_synth_field(&s, "nonsense"));
    unsigned n = 0;
    for (const char *name; (name = k3_synth_field_name(n)); n++)
        assert_non_null(k3_synth_field(&s, name));
    /* Every member has a name: the struct is made of 32-bit numbers only. */
    assert_int_equal(n * sizeof(uint32_t), sizeof s);
    assert_false(k3_synth_preset("nonsense", &s));
    for (size_t i = 0; k3_synth_preset_names[i]; i++) {
        struct k3_error err;
        s = fixture_preset(k3_synth_preset_names[i]);
        assert_int_equal(k3_synth_check(&s, &err), K3_OK);
        assert_non_null(k3_synth_preset_about(k3_synth_preset_names[i]));
    }
}

#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(same_arguments_same_bytes),
        IN_SCRATCH(bytes_are_announced),
        IN_SCRATCH(released_layout),
        IN_SCRATCH(scattered_layout),
        IN_SCRATCH(impossible_geometry),
        IN_SCRATCH(existing_folder_is_kept),
        IN_SCRATCH(full_disk_leaves_nothing),
        IN_SCRATCH(fields_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
