/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trust.h - who could change a file or a folder that decides what runs.
 *
 * One rule for detent.yaml and its folder, for files of variables and for modules:
 *
 *     its owner    root, or the user who runs it
 *     its group    may write if it is root's; for others than root also if it is one of theirs
 *     everybody    must not write
 *
 * A folder that only keeps others from replacing what is theirs, as /tmp does, is sticky. Whether
 * that is enough depends on what is kept there, so the caller says it. */
#ifndef DET_TERMINAL_TRUST_H
#define DET_TERMINAL_TRUST_H

#include <sys/stat.h>

enum trust {
    TRUST_GIVEN,
    TRUST_GROUP,     /* its group may write */
    TRUST_OWNER,     /* its owner is somebody else */
    TRUST_EVERYBODY, /* everybody may write */
};

/* The first reason, from the widest, why `runner` should not run what this file or folder says:
 * EVERYBODY, OWNER, GROUP. */
enum trust trust_of(const struct stat *status, uid_t runner);
/* The same, where who may write to a sticky folder does not matter. */
enum trust trust_of_sticky(const struct stat *status, uid_t runner);

/* For GROUP and EVERYBODY: who may write ("its group"), and the command that ends it ("chmod g-w").
 */
const char *trust_who(enum trust trust);
const char *trust_chmod(enum trust trust);

#endif
