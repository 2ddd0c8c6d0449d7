/* cmd_doctor.h - `k3chat doctor`: what this machine can do, what fits, what to type next. */
#ifndef K3CHAT_CMD_DOCTOR_H
#define K3CHAT_CMD_DOCTOR_H

/* argv[0] is the command's name. Returns the exit status. */
int cmd_doctor(int argc, char **argv);

#endif
