/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trust.h - finds out who may change a file or a folder that decides what runs.
 *
 * One rule for detent.yaml and its folder, for environment files and for modules:
 *
 *     its owner    root, or the user that runs it
 *     its group    may write if it is root's; for users other than root also if they are members
 *     everybody    must not write
 *
 * A sticky folder such as /tmp only prevents users from replacing files of others. Whether that is
 * sufficient depends on its content, so the caller decides. */
#ifndef DET_TERMINAL_TRUST_H
#define DET_TERMINAL_TRUST_H

#include <sys/stat.h>

enum trust {
    TRUST_GIVEN,
    TRUST_GROUP,     /* its group may write */
    TRUST_OWNER,     /* its owner is another user */
    TRUST_EVERYBODY, /* everybody may write */
};

/* Returns the most serious reason why `runner` must not run the content of this file or folder:
 * EVERYBODY, OWNER, GROUP. */
enum trust trust_of(const struct stat *status, uid_t runner);
/* Like trust_of(), but ignores the writers of a sticky folder. */
enum trust trust_of_sticky(const struct stat *status, uid_t runner);

/* For GROUP and EVERYBODY: who may write ("its group"), and the command that prevents it ("chmod
 * g-w"). */
const char *trust_who(enum trust trust);
const char *trust_chmod(enum trust trust);

#endif
