/* settings_engine.c - values about model and machine, doctor's included. */
#include <config.h>

#include "settings_internal.h"

enum k3_status set_model(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->run.engine.model_dir, err);
}

enum k3_status set_profile(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->profile, err);
}

enum k3_status set_name(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->run.profile_name, err);
}

enum k3_status set_budget(struct request *r, const char *v, struct k3_error *err)
{
    if (settings_is_auto(v)) {
        r->run.engine.budget = 0;
        return K3_OK;
    }
    return settings_size(v, 1, &r->run.engine.budget, err);
}

enum k3_status set_context(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32_auto(v, SETTINGS_CONTEXT_MAX, &r->run.engine.context, err);
}

enum k3_status set_threads(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32_auto(v, 1024, &r->run.engine.threads, err);
}

enum k3_status set_chunk(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32_auto(v, 1u << 16, &r->run.engine.chunk, err);
}

enum k3_status set_isa(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", K3_ISA_AUTO},
                                        {"scalar", K3_ISA_SCALAR},
                                        {"avx2", K3_ISA_AVX2},
                                        {"avx512", K3_ISA_AVX512},
                                        {"neon", K3_ISA_NEON}};
    int isa = 0;
    if (TAKE_WORD(v, words, &isa, err) != K3_OK)
        return err->status;
    r->run.engine.isa = (enum k3_isa)isa;
    return K3_OK;
}

enum k3_status set_io(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", K3_IO_AUTO},
                                        {"uring", K3_IO_URING},
                                        {"direct", K3_IO_DIRECT},
                                        {"buffered", K3_IO_BUFFERED}};
    int io = 0;
    if (TAKE_WORD(v, words, &io, err) != K3_OK)
        return err->status;
    r->run.engine.io = (enum k3_io_kind)io;
    return K3_OK;
}

enum k3_status set_depth(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32_auto(v, 1024, &r->run.engine.io_depth, err);
}

enum k3_status set_ring(struct request *r, const char *v, struct k3_error *err)
{
    if (settings_is_auto(v)) {
        r->run.engine.ring = 0;
        return K3_OK;
    }
    return settings_size(v, 1, &r->run.engine.ring, err);
}

enum k3_status set_experts(struct request *r, const char *v, struct k3_error *err)
{
    if (settings_is_auto(v)) {
        r->run.engine.experts = UINT64_MAX;
        return K3_OK;
    }
    return settings_size(v, 0, &r->run.engine.experts, err);
}

enum k3_status set_policy(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"quota", K3_POLICY_QUOTA}, {"lru", K3_POLICY_LRU}};
    int policy = 0;
    if (TAKE_WORD(v, words, &policy, err) != K3_OK)
        return err->status;
    r->run.engine.policy = (enum k3_policy)policy;
    return K3_OK;
}

enum k3_status set_simulate(struct request *r, const char *v, struct k3_error *err)
{
    return settings_size(v, 1, &r->run.engine.simulate_rate, err);
}

enum k3_status set_check_reads(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->run.engine.check_reads = true;
    return K3_OK;
}

enum k3_status set_measure(struct request *r, const char *v, struct k3_error *err)
{
    return settings_size(v, UINT64_C(64) << 20, &r->measure, err);
}
