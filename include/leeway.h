/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libleeway: runs model folders, makes pictures with them, computes drift fields, on the CPU.
 *
 *   lw_device   threads and kernels of this machine
 *   lw_model    the network and weights of a model folder
 *   lw_session  a model compiled for one batch size: set inputs, run, get outputs, by name
 *   lw_sampler  pictures of a generator: DDPM, drift or rectified flow, with progress, preview and cancel
 *   lw_field_*  the drift field of arrays
 *
 * Return values: functions that can fail return 0 or a negative LW_ERROR_*; the reason is then in
 * lw_error_message() of the same thread. Nothing is written through an output pointer on failure.
 *
 * Ownership: whoever opens an object closes it. *_close and *_free take the address of the pointer,
 * accept a null pointer inside, and set it to NULL. A session and a sampler borrow their device and
 * their model: free them first. A GPU that was asked to compute with a model, by a session or a sampler
 * that was made for both or could not be made, may have its weights: close the model before that device, and open
 * it once more for another device. In a callback devices, models and what is running stay open:
 * lw_error_message() says so, and the pointer keeps its value.
 *
 * Threads: any object may be used by one thread at a time; different devices are independent.
 *
 * Memory: a session allocates when it is made; lw_session_run, _set and _get do not allocate (but the set that ends a
 * borrow, on a GPU). Arrays begin at a multiple of 4 bytes.
 *
 * Layouts are PyTorch's: pictures are [N,C,H,W], row-major, 32-bit floats (little-endian x86-64).
 *
 * Functions were added with the LW_API_VERSION that stands at them; none: 1.
 *
 * Results are the same bits for any number of threads and any batch size at one instruction set
 * level. How the caller's thread rounds, flushes subnormals or traps does not change them: functions that compute have
 * C's defaults, callbacks and what follows the caller's.
 *
 * Structs passed in begin with their own size, so that later versions can add fields at the end:
 *     lw_device_options options = {.size = sizeof options, .threads = 4};
 *
 * Fields that are left zero mean "the default".
 *
 * Environment, read when the first device or model is opened: LW_ISA=ref|avx2|avxvnni|avx512|avx512bf16|amx (on
 * 64-bit ARM ref|neon|i8mm) lowers the instruction set level; LW_LOG=info has the library write more log lines than warnings.
 */
#ifndef LEEWAY_H
#define LEEWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows whenever functions or fields are added; the shared library's soname changes when old
 * programs break. */
#define LW_API_VERSION 3

#define LW_API __attribute__((visibility("default")))

/* LW_API_VERSION of the library in use. */
LW_API int lw_api_version(void);
/* "0.1.0 (commit)"; static memory. */
LW_API const char *lw_api_release(void);

/* ---- errors ---------------------------------------------------------------------------------- */

#define LW_ERROR_FAILED (-1)       /* a check failed */
#define LW_ERROR_USAGE (-2)        /* an argument out of range, an unknown name */
#define LW_ERROR_FORMAT (-3)       /* a damaged or unknown file */
#define LW_ERROR_IO (-4)           /* a file that cannot be read */
#define LW_ERROR_MEMORY (-5)       /* the message names the size asked for */
#define LW_ERROR_DEVICE (-6)       /* the machine lacks what was asked for */
#define LW_ERROR_NUMERIC (-7)      /* NaN or infinity where there must be none */
#define LW_ERROR_STOPPED (-8)      /* the cancel callback said so */
#define LW_ERROR_SHAPE (-9)        /* the message names both shapes */
#define LW_ERROR_UNSUPPORTED (-10) /* well-formed, but not built here */

/* What went wrong last on this thread: one line, "" when nothing did. Valid until the
 * next failure. */
LW_API const char *lw_error_message(void);
/* A sentence for a code: "out of memory". Static memory. */
LW_API const char *lw_error_name(int code);

/* ---- log (since 3) --------------------------------------------------------------------------- */

enum { LW_LEVEL_ERROR, LW_LEVEL_WARNING, LW_LEVEL_INFO, LW_LEVEL_DEBUG };

/* area is a word, "config"; text one line without its end. Both until the call returns. */
typedef void (*lw_log_function)(void *self, int level, const char *area, const char *text);
/*
 * What the library has to say beside errors goes to `call` from now on, with `self`: lines of
 * `level` and graver. NULL: to standard error, as "warn config: text"; at first that, and warnings.
 * Of the whole process, at any time, from any thread. Lines come one at a time, on the thread that
 * has something to say; the function before is not called any more when this returns. Lines that
 * `call` itself causes go to standard error. LW_ERROR_USAGE: no such level.
 */
LW_API int lw_set_log(int level, lw_log_function call, void *self);

/* ---- progress -------------------------------------------------------------------------------- */

/* Called on the caller's thread: progress and cancel between batches (of lw_sampler_pictures cancel, like
 * preview, behind every evaluation). Each may be NULL, and returns: neither longjmp nor an exception may leave it. */
typedef struct lw_callbacks {
    size_t size;
    void *self; /* handed to all */
    /* `done` of `total` rows are finished. */
    void (*progress)(void *self, int64_t done, int64_t total);
    /* Not 0: stop. The call under way returns LW_ERROR_STOPPED; rows finished so far are
     * in place. */
    int (*cancel)(void *self);
    /* Of lw_sampler_pictures, since 2: `step` of `steps` evaluations are made of pictures number
     * first .. first + count - 1; pixels [count,C,H,W] are what they are so far, noise and all,
     * until the call returns. */
    void (*preview)(void *self, int64_t first, int64_t count, int step, int steps,
                    const float *pixels);
} lw_callbacks;

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct lw_device lw_device;

typedef struct lw_device_options {
    size_t size;
    int threads; /* the calling thread included; 0: as many as CPUs this process may use */
    /* "ref", "avx2", "avxvnni", "avx512", "avx512bf16" or "amx", on 64-bit ARM "ref", "neon" or "i8mm"; NULL:
     * the best this machine has (and LW_ISA allows) */
    const char *isa;
} lw_device_options;

/* Opens the CPU; where the environment variable LW_DEVICE is "cuda" or "cuda:1", an NVIDIA GPU and
 * the CPU beside it. options may be NULL. LW_ERROR_DEVICE: the CPU lacks that level, or there is no
 * such GPU. */
LW_API int lw_device_open(const lw_device_options *options, lw_device **device);
LW_API void lw_device_close(lw_device **device);
LW_API int lw_device_threads(const lw_device *device);
/* The level; "cuda" of a GPU. Static memory; NULL for NULL. */
LW_API const char *lw_device_isa(const lw_device *device);

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct lw_model lw_model;

typedef struct lw_model_info {
    size_t size;         /* set by the caller */
    const char *kind;    /* "unet", "dit", "encoder", "decoder" or "rehearsal" */
    const char *network; /* "UNet2DModel", "leeway", "resnet20", ...; lives as long as the model */
    int64_t parameters;
    int channels;   /* of its input pictures */
    int image_size; /* height and width it was made for; 0: any */
    int classes;    /* a U-Net's class labels, an encoder's logits; 0: none */
    int latent;     /* length of the latent vector; 0: none */
    /* since 2 */
    const char *method; /* how it makes pictures: "ddpm", "drift", "flow"; NULL: it makes none */
    int noise_size;     /* side of the noise that x may be as well, for it is upsampled; 0: none */
} lw_model_info;

/* path: a model folder (config.json and safetensors weights, as diffusers and Leeway write them), a
 * run directory (newest checkpoint, averaged weights), a checkpoint, or the weights file of a known
 * encoder. */
LW_API int lw_model_open(const char *path, lw_model **model);
LW_API void lw_model_close(lw_model **model);
LW_API int lw_model_describe(const lw_model *model, lw_model_info *info);
/* Since 2. What the folder calls a class; NULL: no name, or no such class. Lives as long as the
 * model. */
LW_API const char *lw_model_class_name(const lw_model *model, int label);

/* ---- sessions -------------------------------------------------------------------------------- */

typedef struct lw_session lw_session;

typedef struct lw_session_options {
    size_t size;
    int batch;          /* rows of one run; 0: 1 */
    int height, width;  /* of the input pictures; 0: the size the model was made for */
    const char *output; /* what to compute, "pooled" or "pooled,s2"; NULL: the first; "*": all */
} lw_session_options;

typedef enum lw_element { LW_ELEMENT_F32 = 1, LW_ELEMENT_I32 = 2 } lw_element;

/*
 * A U-Net has inputs x [N,C,H,W] and t [N] (time, f32), class [N] (i32) and latent [N,K] where the
 * model has them, and the output y [N,C,H,W]; a DiT also styles [N,K] (i32), a network of live video condition
 * [N,C,H,W]. An encoder has x [N,3,H,W] in [-1,1] and, of these
 * outputs, those its family offers: logits [N,K], pooled and cls [N,F], tokens [N,T,C], the maps s0,
 * s1, ... [N,C,h,w] (docs/encoders.md).
 */
typedef struct lw_tensor_info {
    size_t size;      /* set by the caller */
    const char *name; /* lives as long as the session */
    int is_output;
    lw_element element;
    int rank;         /* 1 to 4 */
    int64_t shape[4]; /* shape[0] is the batch */
    size_t bytes;     /* of the whole tensor */
} lw_tensor_info;

/* Compiles the model. options may be NULL. Inputs start as zeros. LW_ERROR_SHAPE: pictures the
 * model cannot take; LW_ERROR_MEMORY: the message names the size. */
LW_API int lw_session_new(lw_device *device, const lw_model *model,
                          const lw_session_options *options, lw_session **session);
LW_API void lw_session_free(lw_session **session);
LW_API int lw_session_tensors(const lw_session *session); /* how many, inputs first */
LW_API int lw_session_tensor(const lw_session *session, int index, lw_tensor_info *info);

/* Copies a whole input. bytes must be the tensor's. Unknown names, outputs and wrong sizes are
 * LW_ERROR_USAGE, and so is a callback of the session's own; classes outside their range
 * LW_ERROR_FORMAT. The copy stays until it is set again. */
LW_API int lw_session_set(lw_session *session, const char *name, const void *data, size_t bytes);
/*
 * Since 3. The input is the caller's memory, read by every run and copied by none, until it is set, is
 * borrowed anew, or the session is freed; data NULL: the session's own again, which is to
 * be set before the next run. It must not change during a run. Layout is the network's own: [N,H,W,C] for pictures
 * (PyTorch's channels_last), else as lw_session_set. A multiple of 4 bytes to begin at, of 64 to
 * be fastest. LW_ERROR_UNSUPPORTED: classes, which are looked at as they are set.
 */
LW_API int lw_session_borrow(lw_session *session, const char *name, const void *data, size_t bytes);
LW_API int lw_session_run(lw_session *session);
/* Copies a whole tensor out. LW_ERROR_DEVICE: the GPU that computed it has failed, and it is no result. */
LW_API int lw_session_get(const lw_session *session, const char *name, void *data, size_t bytes);

/* All rows of one tensor: `in` for inputs, `out` for outputs, the other NULL. */
typedef struct lw_session_rows {
    const char *name;
    const void *in; /* [rows] and the shape of one row */
    void *out;
} lw_session_rows;
/* Any number of rows, batch by batch; 1 to 32 tensors. A row's result depends on no other row.
 * callbacks may be NULL. Where it is stopped, or the device fails, rows before may have been written. */
LW_API int lw_session_run_rows(lw_session *session, int64_t rows, const lw_session_rows *tensors,
                               int count, const lw_callbacks *callbacks);

/* ---- pictures (since 2) ---------------------------------------------------------------------- */

typedef struct lw_sampler lw_sampler;

typedef struct lw_sampler_options {
    size_t size;
    int batch; /* pictures at a time; 0: 16. Never changes them */
    int steps; /* evaluations of the network a picture; 0: as the sampler has it */
    /* "one-step" (drift), "ddim", "ancestral" or "dpm-solver" (DDPM), "euler" or "heun" (flow); NULL: the model's own, one
     * step or DDIM */
    const char *sampler;
    uint64_t seed;
    const char *precision; /* "f32", "bf16", or "int8" of a folder made by `leeway quantize`;
                              NULL: f32 */
} lw_sampler_options;

typedef struct lw_sampler_info {
    size_t size;         /* set by the caller */
    const char *sampler; /* the one that was chosen; static memory */
    int evaluations;     /* a picture */
    int channels, height, width;
    int classes; /* 0: unconditional */
} lw_sampler_info;

/* Compiles the model for sampling. options may be NULL. LW_ERROR_FORMAT: the model makes no
 * pictures; LW_ERROR_USAGE: a sampler or steps that it does not have. */
LW_API int lw_sampler_open(lw_device *device, const lw_model *model,
                           const lw_sampler_options *options, lw_sampler **sampler);
LW_API void lw_sampler_close(lw_sampler **sampler);
LW_API int lw_sampler_describe(const lw_sampler *sampler, lw_sampler_info *info);
/*
 * Pictures number first .. first + count - 1 into pixels [count,C,H,W], in [-1,1] (what drift makes may go beyond): those of
 * `leeway sample` with the same options. A picture is a function of weights, seed, its number and its class
 * alone. classes [count], or NULL: number i gets class i modulo classes. callbacks may be NULL;
 * cancel is asked behind every evaluation (the picture under way is not finished then), progress
 * called behind every batch. LW_ERROR_FORMAT: a class out of range; LW_ERROR_NUMERIC: the network made a number that is
 * none, of which previews may have shown something. Batches before such a one, or before a stop, are in place.
 */
LW_API int lw_sampler_pictures(lw_sampler *sampler, int64_t first, int64_t count,
                               const int32_t *classes, const lw_callbacks *callbacks,
                               float *pixels);

/* ---- the drift field ------------------------------------------------------------------------- */

enum { LW_FIELD_MAX_TEMPERATURES = 8 };

typedef enum lw_field_variant {
    LW_FIELD_OFFICIAL = 0,     /* the reference implementation's form */
    LW_FIELD_PLAIN = 1,        /* the paper's Algorithm 2: raw distances, nothing rescaled */
    LW_FIELD_TAU_TIMES_DIM = 2 /* an early port's temperatures, for parity studies */
} lw_field_variant;

/*
 * Arrays are dense [groups, samples, slots, channels] floats. A group holds the generated samples
 * of one class, the positives they are drawn to and (optionally) unconditional negatives they are
 * pushed from with that group's weight; slots are compared slot by slot. Distances are in units of
 * their mean S, coordinates in units of sigma = S / sqrt(C).
 */
typedef struct lw_field_request {
    size_t size;
    int64_t groups, slots, channels; /* groups and slots 0: 1 */
    int64_t generated, positives;    /* samples in a group */
    int64_t unconditional;           /* 0: none */
    const float *x;                  /* [groups, generated, slots, channels] */
    const float *positive;           /* [groups, positives, slots, channels] */
    const float *uncond;             /* [groups, unconditional, slots, channels], or NULL */
    const float *uncond_weight;      /* [groups], each 0 to 1e6, or NULL: 0 */
    const double *temperatures;      /* [temperature_count], each 1e-30 to 1e30 */
    int temperature_count;           /* 1 .. LW_FIELD_MAX_TEMPERATURES */
    int rows_only;                   /* not 0: no softmax over the generated samples */
    lw_field_variant variant;
    float *field;    /* out: F, shape of x; or NULL */
    float *gradient; /* out: d loss / d x, the goal x + sigma F held fixed, shape of x; or NULL */
} lw_field_request;

typedef struct lw_field_report {
    size_t size; /* set by the caller */
    int temperature_count;
    double scale; /* S: mean distance */
    double sigma; /* unit of coordinates */
    double loss;  /* mean F^2: flat by construction, 1 with one temperature */
    double lambda[LW_FIELD_MAX_TEMPERATURES];      /* RMS of each temperature's field */
    double raw_mean_v2[LW_FIELD_MAX_TEMPERATURES]; /* mean V^2 before it is scaled to 1: falls as
                                                      samples improve */
} lw_field_report;

/* report may be NULL. LW_ERROR_SHAPE: an empty operand; LW_ERROR_USAGE: temperatures, missing
 * arrays, sizes out of range (fewer than 2^31 - 1 vectors in all), vectors whose distances do not
 * fit f32 (beyond 5e16, or not numbers; field and gradient are NaN then). */
LW_API int lw_field_run(lw_device *device, const lw_field_request *request,
                        lw_field_report *report);

#ifdef __cplusplus
}
#endif
#endif
