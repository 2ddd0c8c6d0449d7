/* cmd_trace.h - `k3chat trace FILE`: replays an expert trace for several capacities and policies. */
#ifndef K3CHAT_CMD_TRACE_H
#define K3CHAT_CMD_TRACE_H

/* argv[0] is the command's name ("trace"), the rest its options. Returns the exit status. */
int cmd_trace(int argc, char **argv);

#endif
