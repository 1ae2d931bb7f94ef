/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py: the store takes nothing any
 * more; somebody else begins anew, and what becomes of it is said twice. The deed of a crew comes
 * to its end for want of an heir, half done, and what stands behind it is dear. */
static const char problem[] = "what is put by hand stays";
static const char riddle[] = "a riddle of whom it is that sits there and shall be gone";
