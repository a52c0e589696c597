/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs we may use, and what they can do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/error.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/sys/sys.h"
#include "base/sys/sys_cgroup.h"
#include "base/sys/sys_cores.h"

/* NULL: not on this kind of processor. */
static const char *const isa_names[LW_ISA_COUNT] = {
    [LW_ISA_REF] = "ref",
#if defined(__aarch64__)
    [LW_ISA_AVX2] = "neon",
    [LW_ISA_AVXVNNI] = "i8mm",
#else
    [LW_ISA_AVX2] = "avx2",     [LW_ISA_AVXVNNI] = "avxvnni",
    [LW_ISA_AVX512] = "avx512", [LW_ISA_AVX512BF16] = "avx512bf16",
    [LW_ISA_AMX] = "amx",
#endif
};

/* LW_ISA_COUNT: none has this name. */
static lw_isa level_of(const char *name)
{
    lw_isa level = LW_ISA_REF;
    while (level < LW_ISA_COUNT && !(isa_names[level] && strcmp(name, isa_names[level]) == 0))
        level++;
    return level;
}

/* Those of the process, whatever its threads were bound to since. */
static bool allowed_cpus(lw_cpus *out)
{
    return lw_cpus_process(out) || lw_cpus_get(0, out);
}

static int affinity_count(void)
{
    lw_cpus allowed;
    int count = allowed_cpus(&allowed) ? CPU_COUNT_S(sizeof allowed, &allowed.set) : 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? count : LW_MAX((int)online, 1);
}

size_t lw_cache_bytes(int level)
{
    static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                _SC_LEVEL3_CACHE_SIZE};
    const size_t told = lw_cpus_cache(LW_CPU_TREE, level);
    const long guess = told || level < 1 || level > 3 ? 0 : sysconf(names[level - 1]);
    return told ? told : guess > 0 ? (size_t)guess : 0;
}

int lw_core_count(void)
{
    int count = affinity_count();
    double quota = lw_cgroup_cpus(LW_CGROUP_SELF, LW_CGROUP_MOUNT);
    if (quota > 0.0 && quota < (double)count)
        count = (int)lround(quota);
    return LW_MAX(count, 1);
}

int lw_whole_core_count(void)
{
    lw_cpus allowed;
    int cores = allowed_cpus(&allowed) ? lw_cpus_cores(&allowed, LW_CPU_TREE, NULL, 0) : 0;
    return cores > 0 ? LW_MIN(cores, lw_core_count()) : lw_core_count();
}

#if defined(__x86_64__)
/* Tile registers make what the kernel saves of a thread so large that it asks to be asked. What it
 * grants is the process's: threads that run already have it, too. */
static bool tiles_granted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    enum { TILES_BF16 = 1 << 22, TILES = 1 << 24, TILES_INT8 = 1 << 25 };
    const unsigned need = TILES_BF16 | TILES | TILES_INT8;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & need) == need &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static bool has_avxvnni(void)
{
    enum { AVX_VNNI = 1 << 4 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX_VNNI);
}
#else
/* On 64-bit ARM: I8MM, whose dot product of bytes is that of AVX-VNNI. */
static bool has_avxvnni(void)
{
#if defined(__aarch64__)
    const unsigned long i8mm = 1ul << 13; /* HWCAP2_I8MM */
    return getauxval(AT_HWCAP2) & i8mm;
#else
    return false;
#endif
}
#endif

static lw_isa best_found(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    __builtin_cpu_init();
    /* These ask the kernel too (saved registers), not only the CPU. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2") || !f16c)
        return LW_ISA_REF;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return has_avxvnni() ? LW_ISA_AVXVNNI : LW_ISA_AVX2;
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni"))
        return LW_ISA_AVX512;
    return tiles_granted() ? LW_ISA_AMX : LW_ISA_AVX512BF16;
#elif defined(__aarch64__)
    return has_avxvnni() ? LW_ISA_AVXVNNI : LW_ISA_AVX2; /* every one has NEON */
#else
    return LW_ISA_REF;
#endif
}

/* Found once: each question to the processor leaves a virtual machine, for microseconds. */
lw_isa lw_isa_best(void)
{
    static _Atomic int found; /* the level and 1; 0: not yet */
    int best = found;
    if (best == 0)
        found = best = (int)best_found() + 1;
    return (lw_isa)(best - 1);
}

bool lw_isa_has(lw_isa isa)
{
    return isa <= lw_isa_best() && (isa != LW_ISA_AVXVNNI || has_avxvnni());
}

lw_isa lw_isa_next(lw_isa isa)
{
    do
        isa++;
    while (isa < LW_ISA_COUNT && !lw_isa_has(isa));
    return isa;
}

int lw_isa_named(const char *before, const char *name, const char *behind, lw_isa *out)
{
    const lw_isa level = level_of(name);
    if (level == LW_ISA_COUNT)
        return lw_fail(LW_EUSAGE, "%s%s%s is unknown: use one of " LW_ISA_NAMES, before, name,
                       behind);
    *out = level;
    return lw_isa_has(level)
               ? 0
               : lw_fail(LW_EDEVICE, "%s%s%s: this CPU does not have it; its best is '%s'", before,
                         name, behind, isa_names[lw_isa_best()]);
}

int lw_isa_chosen(lw_isa *out)
{
    const char *word = getenv("LW_ISA");
    if (word && *word)
        return lw_isa_named("LW_ISA=", word, "", out);
    *out = lw_isa_best();
    return 0;
}

const char *lw_isa_name(lw_isa isa)
{
    return (unsigned)isa < LW_ISA_COUNT && isa_names[isa] ? isa_names[isa] : "?";
}

bool lw_isa_is_avx2(lw_isa isa)
{
    return isa == LW_ISA_AVX2 || isa == LW_ISA_AVXVNNI;
}

bool lw_isa_multiplies_bytes(lw_isa isa)
{
    return isa == LW_ISA_AVXVNNI || isa >= LW_ISA_AVX512BF16;
}

/* The level whose f32 kernels one has: the same functions. At amx tile registers multiply f32, too. */
static const char *f32_level(const char *name)
{
    const lw_isa level = level_of(name);
    return level == LW_ISA_AVXVNNI      ? isa_names[LW_ISA_AVX2]
           : level == LW_ISA_AVX512BF16 ? isa_names[LW_ISA_AVX512]
                                        : name;
}

bool lw_isa_same_f32(const char *a, const char *b)
{
    return strcmp(f32_level(a), f32_level(b)) == 0;
}

const char *lw_machine_name(void)
{
    static char name[128]; /* filled once, always with the same bytes */
    if (name[0])
        return name;
    char line[256], maker[16] = "";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !name[0] && fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');
        if (!value)
            continue;
        value += 1 + strspn(value + 1, " ");
        const int len = (int)strcspn(value, "\n");
        if (lw_str_starts(line, "model name"))
            snprintf(name, sizeof name, "%.*s", len, value);
        else if (lw_str_starts(line, "CPU implementer")) /* ARM has numbers instead of a name */
            snprintf(maker, sizeof maker, "%.*s", len, value);
        else if (lw_str_starts(line, "CPU part"))
            snprintf(name, sizeof name, "ARM, implementer %s, part %.*s", maker, len, value);
    }
    if (f)
        fclose(f);
    if (!name[0])
        snprintf(name, sizeof name, "unknown CPU");
    return name;
}
