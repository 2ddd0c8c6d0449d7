/* cmd_sessions.h - `k3chat sessions ...`: what to do with transcripts outside the chat. */
#ifndef K3CHAT_CMD_SESSIONS_H
#define K3CHAT_CMD_SESSIONS_H

/* argv[0] is the command's name ("sessions"). Returns the exit status. */
int cmd_sessions(int argc, char **argv);

#endif
