/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects of the program, loaded on first use. */
#include "base/sys/sys_module.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sys/sys.h"

/* Behind the program's folder; the second relative to it, so that an installed tree may be moved. */
static const char *const folders[] = {"", "/" LW_MODULE_FOLDER};

/* Where the module would lie: in one of the folders. */
static int path_in(const char *folder, const char *name, lw_str *out)
{
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    program[n > 0 ? n : 0] = '\0';
    lw_path_parent(program, &dir);
    out->len = 0;
    lw_str_addf(out, "%s%s/leeway-%s.so", lw_str_c(&dir), folder, name);
    return dir.failed || out->failed ? LW_ENOMEM : 0;
}

static int find(const char *name, lw_str *out)
{
    for (size_t i = 0; i < LW_COUNT(folders); i++) {
        LW_TRY(path_in(folders[i], name, out));
        if (access(lw_str_c(out), R_OK) == 0)
            return 0;
    }
    LW_CLEANUP(lw_str_clear) lw_str first = {0};
    LW_TRY(path_in(folders[0], name, &first));
    return lw_fail(LW_EUNSUPPORTED, "there is neither %s nor %s", lw_str_c(&first), lw_str_c(out));
}

int lw_module_open(const char *name, int32_t version, const void **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, symbol = {0};
    LW_TRY(find(name, &path));
    lw_str_addf(&symbol, "lw_module_%s", name);
    if (symbol.failed)
        return LW_ENOMEM;
    void *handle = dlopen(lw_str_c(&path), RTLD_NOW | RTLD_LOCAL);
    if (!handle) /* says which library */
        return lw_fail(LW_EUNSUPPORTED, "%s", dlerror());
    const int32_t *calls = dlsym(handle, lw_str_c(&symbol));
    if (!calls || *calls != version) {
        dlclose(handle);
        return lw_fail(LW_EUNSUPPORTED, "%s is of another version of leeway", lw_str_c(&path));
    }
    *out = calls;
    return 0;
}

bool lw_module_there(const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    return find(name, &path) == 0;
}
