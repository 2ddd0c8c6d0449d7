/* commands.c - the table of commands; a new one is a file and a row here. */
#include <config.h>

#include <string.h>

#include "cmd_bench.h"
#include "cmd_doctor.h"
#include "cmd_sessions.h"
#include "cmd_trace.h"
#include "helper.h"
#include "options.h"

const struct command commands[] = {
    {"doctor", "doctor [--model DIR]", "what this machine can do, and which profile fits",
     cmd_doctor},
    {"fetch", "fetch [options] SOURCE FOLDER", "downloads a checkpoint", helper_run},
    {"verify", "verify --model DIR", "checks that a checkpoint is whole", helper_run},
    {"sessions", "sessions list|show|export|rename|delete|search|check|import",
     "looks after the saved chats", cmd_sessions},
    {"trace", "trace FILE", "replays an expert trace: hit rate by capacity and policy", cmd_trace},
    {"bench", "bench kernels|ladder|threads|io", "measures this machine and this program",
     cmd_bench},
    {NULL, NULL, NULL, NULL},
};
