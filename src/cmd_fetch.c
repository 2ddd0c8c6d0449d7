/* cmd_fetch.c - see cmd_fetch.h. */
#include <config.h>

#include "cmd_fetch.h"

#include <curl/curl.h>
#include <stdio.h>

#include "fetch.h"
#include "options.h"

static const char help_text[] =
    "Usage: k3chat fetch [options] SOURCE FOLDER\n"
    "\n"
    "Downloads a checkpoint into FOLDER: the index, the shards that it names, configuration\n"
    "and tokenizer. SOURCE is a repository, OWNER/NAME, or the address of a folder,\n"
    "https://HOST/PATH, that the files are in. What is cut off goes on where it was, also\n"
    "with the next run; a second run fetches only what is missing or wrong.\n"
    "\n";

static const char help_end[] =
    "\n"
    "Environment: K3CHAT_TOKEN is sent to the server of SOURCE (and to no other) as a bearer\n"
    "token; HF_TOKEN likewise, if SOURCE is a repository; https_proxy as usual.\n";

static int fetch(struct request *r)
{
    struct k3_error err = {0};
    if (r->n_words < 2) {
        k3_fail(&err, K3_USAGE, "fetch needs a source and a folder: k3chat fetch SOURCE FOLDER");
        return report_error(&err);
    }
    r->fetch.where = r->words[0];
    r->fetch.dir = r->words[1];
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        k3_fail(&err, K3_FAILED, "the library libcurl cannot be started");
        return report_error(&err);
    }
    const enum k3_status st = fetch_run(&r->fetch, &err);
    curl_global_cleanup();
    return st == K3_OK ? 0 : report_error(&err);
}

int cmd_fetch(int argc, char **argv)
{
    struct request r;
    struct k3_error err = {0};
    int status = 0;
    switch (options_parse(argc, argv, FOR_FETCH, &r, &err)) {
    case OPTIONS_HELP:
        fputs(help_text, stdout);
        options_print(stdout, FOR_FETCH, 0);
        fputs(help_end, stdout);
        break;
    case OPTIONS_VERSION:
        version_print(stdout);
        break;
    case OPTIONS_ERROR:
        status = report_error(&err);
        break;
    case OPTIONS_RUN:
        status = fetch(&r);
        break;
    }
    request_free(&r);
    return status;
}
