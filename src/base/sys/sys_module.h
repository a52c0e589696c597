/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: parts of the program whose libraries most runs do without. Linked like others, those
 * libraries would be loaded by every start.
 *
 * A module is a shared object leeway-NAME.so with one symbol, lw_module_NAME: a const struct of
 * functions whose first member is the int32_t version of its layout. It lies beside the program (in
 * a build folder) or in LIBDIR/leeway (installed), and calls nothing of the program but what it is
 * given. The build makes them with lw_module(..) of CMakeLists.txt.
 */
#ifndef LW_BASE_SYS_MODULE_H
#define LW_BASE_SYS_MODULE_H

#include <stdbool.h>
#include <stdint.h>

/* The module's struct, loaded on first use and kept to the end of the process. LW_EUNSUPPORTED: it
 * is not there, a library that it needs is not, or it is of another version; says where was looked. */
int lw_module_open(const char *name, int32_t version, const void **out);
/* Whether there is one, nothing loaded. */
bool lw_module_there(const char *name);

#endif
