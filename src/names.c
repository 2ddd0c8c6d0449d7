/* names.c - the words for phases and ends; see session.h. */
#include <config.h>

#include "session.h"

const char *session_phase_name(enum session_phase p)
{
    static const char *const names[] = {"loading",    "reading prompt", "thinking", "answering",
                                        "cancelling", "saving",         "idle",     "asking",
                                        "failed",     "read only"};
    return names[p];
}

const char *session_finish_name(enum session_finish f)
{
    static const char *const names[] = {"stop", "length", "cancelled", "error"};
    return names[f];
}
