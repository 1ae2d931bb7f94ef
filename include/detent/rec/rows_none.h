/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_none.h - no row of a record is a macro. No include guard on purpose. */
#undef RECORD
#undef FIELD
#undef OPTIONAL
#undef ARRAY
#undef ENUM
#undef VALUE
#undef END
