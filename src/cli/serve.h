/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve.h - what makes a daemon of `detent up`: where its project is, what it refuses, who started
 * it and what that wants to know.
 *
 *     serve.c         the command `detent serve`
 *     serve_place.c   which folder is the project, and where its state is
 *     serve_safe.c    what is not safe to run
 *     serve_user.c    becoming another user
 *     serve_given.c   sockets that were opened before us
 *     serve_notify.c  what our own supervisor is told */
#ifndef DET_CLI_SERVE_H
#define DET_CLI_SERVE_H

#include "cli/config_file.h"

/* serve_place.c */

/* The project of the folder we are in, as an absolute path of DET_PATH_MAX bytes: that of
 * socket_find(), or the folder itself if it has specs. */
DET_MUST_CHECK int serve_project(char *target, struct det_error *reterr);
/* The folder `.detent` of it, which may not be there yet. */
DET_MUST_CHECK int serve_state_folder(char *target, struct det_error *reterr);

#endif
