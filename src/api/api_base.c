/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, errors, sized structs, devices. */
#include <string.h>

#include "api/api_private.h"
#include "backend/backend.h"

/* The public codes are the private ones by other names. */
#define SAME(a, b) _Static_assert((a) == (b), #a)
SAME(LW_ERROR_FAILED, LW_EFAILED);
SAME(LW_ERROR_USAGE, LW_EUSAGE);
SAME(LW_ERROR_FORMAT, LW_EFORMAT);
SAME(LW_ERROR_IO, LW_EIO);
SAME(LW_ERROR_MEMORY, LW_ENOMEM);
SAME(LW_ERROR_DEVICE, LW_EDEVICE);
SAME(LW_ERROR_NUMERIC, LW_ENUMERIC);
SAME(LW_ERROR_STOPPED, LW_ESTOPPED);
SAME(LW_ERROR_SHAPE, LW_ESHAPE);
SAME(LW_ERROR_UNSUPPORTED, LW_EUNSUPPORTED);

int lw_api_version(void)
{
    return LW_API_VERSION;
}

const char *lw_api_release(void)
{
    return lw_build_release();
}

const char *lw_error_message(void)
{
    return lw_errmsg();
}
const char *lw_error_name(int code)
{
    return lw_errname(code);
}

/* ---- log ------------------------------------------------------------------------------------- */

SAME((int)LW_LEVEL_ERROR, (int)LW_LOG_ERROR);
SAME((int)LW_LEVEL_WARNING, (int)LW_LOG_WARN);
SAME((int)LW_LEVEL_INFO, (int)LW_LOG_INFO);
SAME((int)LW_LEVEL_DEBUG, (int)LW_LOG_DEBUG);

int lw_set_log(int level, lw_log_function call, void *self)
{
    if (level < LW_LEVEL_ERROR || level > LW_LEVEL_DEBUG)
        return lw_fail(LW_EUSAGE, "lw_set_log: level is %d: must be %d to %d", level,
                       LW_LEVEL_ERROR, LW_LEVEL_DEBUG);
    LW_TRY(lw_log_config_once()); /* so that it does not undo this later */
    lw_log_set((lw_log_level)level);
    lw_log_to(call, self);
    return 0;
}

/* ---- structs that begin with their size ------------------------------------------------------ */

static int size_of(const void *theirs, const char *what, size_t *size)
{
    if (!theirs)
        return lw_fail(LW_EUSAGE, "%s is NULL", what);
    memcpy(size, theirs, sizeof *size);
    if (*size < sizeof *size || *size > 65536)
        return lw_fail(LW_EUSAGE, "%s: .size is %zu; set it to the size of the struct", what,
                       *size);
    return 0;
}

int lw_api_read(void *own, size_t own_size, const void *theirs, const char *what)
{
    size_t size = 0;
    LW_TRY(size_of(theirs, what, &size));
    memset(own, 0, own_size);
    memcpy(own, theirs, LW_MIN(size, own_size));
    return 0;
}

int lw_api_write(void *theirs, void *own, size_t own_size, const char *what)
{
    size_t size = 0;
    LW_TRY(size_of(theirs, what, &size));
    memcpy(own, &size, sizeof size);
    memcpy(theirs, own, LW_MIN(size, own_size));
    return 0;
}

/* ---- floats ---------------------------------------------------------------------------------- */

fenv_t lw_api_floats(void)
{
    fenv_t theirs;
    fegetenv(&theirs);
    fesetenv(FE_DFL_ENV);
    return theirs;
}

void lw_api_floats_back(const fenv_t *theirs)
{
    fesetenv(theirs);
}

/* ---- calls that have callbacks --------------------------------------------------------------- */

static _Thread_local lw_api_use *running;

static bool is_running(const void *object)
{
    for (const lw_api_use *u = running; u; u = u->outer)
        if (!object || u->object == object)
            return true;
    return false;
}

int lw_api_idle(const void *object, const char *what)
{
    return is_running(object) ? lw_fail(LW_EUSAGE, "%s: called in a callback of its own", what) : 0;
}

int lw_api_enter(lw_api_use *use, const void *object, const char *what)
{
    LW_TRY(lw_api_idle(object, what));
    *use = (lw_api_use){.object = object, .outer = running, .theirs = lw_api_floats()};
    running = use;
    return 0;
}

void lw_api_leave(const lw_api_use *use)
{
    running = use->outer;
    lw_api_floats_back(&use->theirs);
}

void lw_api_outside(void)
{
    lw_api_floats_back(&running->theirs);
}

void lw_api_inside(void)
{
    running->theirs = lw_api_floats(); /* a callback may have changed them */
}

void lw_api_progress(const lw_callbacks *c, int64_t done, int64_t total)
{
    lw_api_outside();
    if (c->progress)
        c->progress(c->self, done, total);
    lw_api_inside();
}

bool lw_api_cancelled(const lw_callbacks *c)
{
    lw_api_outside();
    bool stop = c->cancel && c->cancel(c->self) != 0;
    lw_api_inside();
    return stop;
}

bool lw_api_running(const void *object, const char *what)
{
    if (!is_running(object))
        return false;
    lw_fail(LW_EUSAGE, "%s: nothing is closed in a callback of a call that may use it", what);
    return true;
}

/* ---- devices --------------------------------------------------------------------------------- */

int lw_device_open(const lw_device_options *options, lw_device **device)
{
    lw_device_options o = {0};
    lw_backend_options own = {0};
    API_FLOATS();
    API_NEED(device);
    LW_TRY(lw_log_config_once());
    if (options)
        LW_TRY(API_READ(o, options));
    if (o.threads < 0 || o.threads > 4096)
        return lw_fail(LW_EUSAGE, "%d threads: must be 0 to 4096", o.threads);
    own.threads = o.threads;
    LW_TRY(o.isa ? lw_isa_named("instruction set level '", o.isa, "'", &own.isa)
                 : lw_isa_chosen(&own.isa));
    LW_TRY(lw_backend_check_chosen());
    return lw_backend_open(lw_backend_chosen(), &own, device);
}

void lw_device_close(lw_device **device)
{
    if (device && *device && !lw_api_running(NULL, "lw_device_close"))
        lw_backend_close(device);
}

int lw_device_threads(const lw_device *device)
{
    API_NEED(device);
    return lw_pool_size(device->pool);
}
const char *lw_device_isa(const lw_device *device)
{
    if (!device) {
        lw_fail(LW_EUSAGE, "lw_device_isa: device is NULL");
        return NULL;
    }
    return device->isa;
}
