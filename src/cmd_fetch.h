/* cmd_fetch.h - `k3chat fetch SOURCE FOLDER`: downloads a checkpoint. Runs in k3chat-files. */
#ifndef K3CHAT_CMD_FETCH_H
#define K3CHAT_CMD_FETCH_H

/* argv[0] is the command's name. Returns the exit status. */
int cmd_fetch(int argc, char **argv);

#endif
