/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* second.h - has a name that the other one has too. */
#ifndef DETENT_SECOND_H
#define DETENT_SECOND_H

enum det_same {
    DET_SAME_SECOND,
};

#endif
