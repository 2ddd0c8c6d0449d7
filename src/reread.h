/* reread.h - what it costs to read again what was read before, and asking the person before it. For
 * the engine thread. */
#ifndef K3CHAT_REREAD_H
#define K3CHAT_REREAD_H

#include "session_internal.h"

/* Tokens of the conversation that a session which had never ended would have behind it; the next
 * prompt begins with them and goes on with a few that are new in any case. */
enum k3_status reread_known(const struct session *s, enum k3_thinking thinking, size_t *known,
                            struct k3_error *err);

/* What the loaded conversation will cost before the next answer: told, and put into the state. */
void reread_tell(struct session *s);

/* So many tokens have to be read again now. When that takes longer than the configuration lets pass,
 * waits in PHASE_ASKING until session_decide(); else the cost is told. False: it shall not be. */
bool reread_allowed(struct session *s, size_t tokens);

/* A prompt has been read: the next estimate is made from it. */
void reread_measured(struct session *s, const struct step_stats *prefill);

#endif
