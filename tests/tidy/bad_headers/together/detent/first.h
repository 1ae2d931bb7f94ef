/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* first.h - has a name that the other one has too. */
#ifndef DETENT_FIRST_H
#define DETENT_FIRST_H

enum det_same {
    DET_SAME_FIRST,
};

#endif
