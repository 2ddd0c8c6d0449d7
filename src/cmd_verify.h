/* cmd_verify.h - `k3chat verify --model DIR`: is the checkpoint whole? Runs in k3chat-files. */
#ifndef K3CHAT_CMD_VERIFY_H
#define K3CHAT_CMD_VERIFY_H

/* argv[0] is the command's name. Returns the exit status. */
int cmd_verify(int argc, char **argv);

#endif
