/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network over pictures. Each family that files hold is one const record, all records are rows of
 * networks.def, and nothing else in the program asks which family a network is of. Encoders and
 * generators share the record: what tells them apart is what they take and offer (`generator`, taps).
 * Policies and embeddings of graphs (models/proof) have none: they take other things, and each is
 * opened by options that want nothing else.
 *
 *    SOURCE, encoder spec ──► record, by config.json's class name or by the tensors
 *                             ──► arch, frozen store ──► lw_network
 *    x [t class latent styles alpha condition] ──lw_network_append──► taps
 *
 * Families that are still to come were held against it (docs/howto/add-an-encoder.md): ConvNeXt,
 * Inception, DiT.
 */
#ifndef LW_MODELS_NETWORK_H
#define LW_MODELS_NETWORK_H

#include "data/data.h"
#include "models/models_taps.h"

typedef struct lw_network lw_network;
typedef struct lw_network_form lw_network_form;

/* Values a network is built on; those it does not take are absent. */
typedef struct lw_network_in {
    lw_val x;         /* f32[B,h,w,C], pictures in [-1,1]; gray for RGB and RGB for gray, too */
    lw_val t;         /* f32[B]; absent: constant 0, so that its embedding is made when prepared */
    lw_val classes;   /* i32[B] */
    lw_val latent;    /* f32[B,latent] */
    lw_val styles;    /* i32[B,styles], each below style_words */
    lw_val alpha;     /* f32[B]: strength of guidance; absent: 1 */
    lw_val condition; /* f32[B,h,w,condition], in [-1,1]: frames that the answer depends on */
    lw_val rows;      /* i64[B]: row ids of what is drawn, in training and by a hook */
} lw_network_in;

/* Pictures of any other size become h x w inside the graph, so that gradients flow through it. */
typedef struct lw_network_fit {
    int32_t h, w;   /* 0: no picture is resized */
    int32_t form;   /* lw_resample_form: torch, float-aa (antialiased), tf-inception */
    int32_t filter; /* lw_filter: bilinear or bicubic */
} lw_network_fit;

typedef struct lw_network_def {
    const char *name; /* with `recognise` also a word of specs: NAME:FILE.safetensors */
    const char *kind; /* "encoder", "unet", ...: for lw_model_describe */
    /* Another record of which this one is a form (of the same weights); NULL: none. And what its
     * published weights were trained for and on ("classify", "imagenet"); NULL: not known. */
    const char *family, *objective, *trained_on;
    /* Latents to pictures: where two records share a class name, the one of decoder:SOURCE. */
    bool decoder;
    /* What configurations call it (lw_network_class): patterns (lw_naming_fits) with spaces between.
     * Of several records of one class the first is meant where no word says which. NULL: none. */
    const char *class_name;
    const char *keys;  /* feature keys of a drift loss that names none; NULL: col */
    size_t arch_bytes; /* of its configuration, a plain struct */
    /* config.json or open_clip_config.json -> arch; `where` names the file in messages. Refuses keys
     * that it does not honour (lw_json_check_known). */
    int (*read)(const json_t *config, const char *where, void *arch);
    /* Are these its tensors? Sets arch, or what `read` left open. NULL: a folder's config.json must
     * say it. */
    bool (*recognise)(const lw_st_file *f, void *arch);
    const char *tensors; /* what it looks for, for messages */
    /* The other way: config, naming and notes of n in a library's folder (models_form.h); out is
     * zero but for empty config and notes. NULL: its files are of one library. */
    int (*write)(const lw_network *n, lw_library to, lw_network_form *out);
    void (*describe)(lw_network *n); /* facts of n beside its arch; NULL: none */
    /* Names (one, or several with spaces between) of the weight [O,C,h,w] that pictures meet first: it
     * says their channels. NULL: describe says them, where they are not 3. */
    const char *stem;
    const lw_naming *namings; /* of tensors in files; NULL: build's names */
    /* What its pictures are made of where no file beside the weights says it; its numbers are ops
     * before build. NULL: [-1,1] as it is. */
    const lw_preparation *preparation;
    /* What else changes in a preparation whose form was just set (lw_encoder_resize): the filter and
     * the numbers that go with it. NULL: nothing. */
    void (*resize)(const void *arch, lw_preparation *p);
    /* Declares parameters that stand in files but not in build's graph, fixes s. NULL: build's. */
    int (*declare)(const void *arch, lw_store *s);
    /* NULL: no taps. */
    void (*build)(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out);
} lw_network_def;

#define NETWORK(x) extern const lw_network_def lw_network_def_##x;
#include "models/networks.def"
#undef NETWORK

struct lw_network {
    const lw_network_def *def;
    char *dir;                 /* the folder or file the weights came from; NULL: encoder none */
    json_t *config;            /* config.json; NULL: weights alone */
    void *arch;                /* [def->arch_bytes] */
    lw_store *store;           /* frozen, or that of lw_network_train; NULL: encoder none */
    int64_t parameters;        /* trained numbers: BatchNorm's running statistics do not count */
    bool training;             /* is built with dropout and the input rows */
    const lw_layer_hook *hook; /* over its layers' outputs, and the input rows (models_noise.h);
                                  borrowed, or NULL */
    int32_t window; /* > 0: a U-Net's attention over pictures of 1,024 places or more is in
                                  windows of such sides (lw_attr_attention); not in training */
    /* of the taps */
    int32_t features;           /* width of pooled; 0: none */
    int32_t classes;            /* of logits, or of the input class; 0: none */
    bool null_class;            /* of a generator: input class number `classes` says none */
    int32_t outputs;            /* channels of y; 0: none */
    bool prepared;              /* pictures in [-1,1] become the numbers of `preparation` */
    lw_preparation preparation; /* preprocessor_config.json, config.json's pretrained_cfg, or the
                                   record's, whose sizes describe may set */
    lw_network_fit fit;         /* of encoders (lw_encoder_open) */
    /* set by describe */
    const char *name;   /* "resnet56"; def->name unless set */
    int32_t image_size; /* side it was made for; 0: any */
    int32_t multiple;   /* sides of its pictures are multiples of it; 0: any */
    int32_t channels;   /* of its pictures; 3 unless set, or as its stem says */
    int32_t latent;     /* width of the input latent; 0: none */
    int32_t styles,
        style_words;    /* ids of the input styles, and how many there are of each; 0: none */
    float alpha;        /* greatest strength of guidance that it was told; 0: none */
    int32_t condition;  /* channels of the input condition, of frames as large as y; 0: none */
    int32_t noise_size; /* side of smaller noise that x may be as well; 0: none */
    int32_t judged;     /* real classes of a judge, the others are junk; 0: not a judge */
    bool generator;     /* takes t (and class, latent, styles) and offers y */
    bool timeless;      /* a generator that takes no t */
};

/* source: a run (its newest checkpoint), a checkpoint or model folder, or weights alone that are
 * recognised; behind "NAME:" such a file or folder of that record, behind "decoder:" its half that
 * decodes (of a folder of diffusers that in vae/). ema: the averaged weights of a checkpoint. LW_EIO,
 * LW_EFORMAT: what is missing or wrong; LW_EUNSUPPORTED: config.json names another network. */
int lw_network_open(const char *source, bool ema, lw_network **out);
/* spec: none | a source. Pictures of another size than that of its preparation, where it has one, are
 * resized to it in the graph, bilinear and without antialias. LW_EUSAGE: an unknown word (nearest named) or a missing file part;
 * LW_EFORMAT: a network that takes more than pictures. */
int lw_encoder_open(const char *spec, lw_network **out);
/* Does it encode pictures? LW_EFORMAT: it makes them. */
int lw_network_encodes(const lw_network *n);
/* Has it features? LW_EUSAGE: none, as `none` has; spec names it. */
int lw_network_measures(const lw_network *n, const char *spec);
/* The specs of a list "A,B", on the heap; one that is the name of a file or folder as it is is not cut. LW_EUSAGE: an
 * empty one, or too many; then none is left. */
enum { LW_ENCODERS_MOST = 4 };
int lw_encoder_specs(const char *list, char *spec[LW_ENCODERS_MOST], int32_t *n);
/*
 * What a picture goes through before the graph: the preparation whose part on bytes lw_prepare does.
 * NULL: it goes in as it is, at any size, in [-1,1] made of bytes; because nothing is said of sizes,
 * or because the preparation's form is one of floats: then the graph resizes by itself, and rows of
 * data keep their own size.
 */
const lw_preparation *lw_network_preparation(const lw_network *n);
/* Does its preparation say a size? Else pictures go in as large as they are. */
static inline bool lw_network_sized(const lw_network *n)
{
    return n->prepared && n->preparation.height > 0;
}
/* Is it the latter? Then data is opened `whole`. */
bool lw_network_resizes(const lw_network *n);
/* How data is opened for it: preparation, channels, and the side of squares (image_size, or its own
 * where that is 0) or whole pictures; all else is the caller's. */
lw_data_opts lw_network_data(const lw_network *n, int32_t image_size);
/* Another resize in its preparation, by name (lw_resample_form_name: pillow, float-aa, torch,
 * tf-inception), with the filter and the numbers that its family has for it (def->resize). LW_EUSAGE:
 * no such resize, one without the network's filter, or a network without a size. */
int lw_encoder_resize(lw_network *n, const char *name);
/* Another fit: size x size pictures (0: as it was), by number `resize` of the names. LW_EUSAGE: the
 * network takes one size only. */
#define LW_ENCODER_RESIZES "bilinear|bicubic|bilinear-antialias|bicubic-antialias"
int lw_encoder_fit(lw_network *n, int32_t size, int32_t resize);
/* "resized to 224x224 (bilinear)" for pictures of h x w, or "": they stay as they are. */
const char *lw_encoder_fit_text(const lw_network *n, int32_t h, int32_t w, char buf[64]);
void lw_network_close(lw_network **pp);
/* The same without its hook, for graphs without noise. Borrows all of n: it is not closed. */
static inline lw_network lw_network_plain(const lw_network *n)
{
    lw_network plain = *n;
    plain.hook = NULL;
    return plain;
}
/* What a configuration says a network is: diffusers' and our "_class_name", timm's "architecture",
 * transformers' "model_type", open_clip's "timm_model_name", the first of "architectures"; without
 * any of them "open_clip" where it is open_clip's; NULL: nothing. */
const char *lw_network_class(const json_t *config);
/* A network without files, as trainers have it, built on the parameters of s. Borrows both; facts of
 * its taps are not set. */
lw_network lw_network_of(const lw_network_def *def, void *arch, lw_store *s);
/* The network that a config.json describes, without weights; `where` names it in messages. */
int lw_network_of_config(const json_t *config, const char *where, lw_network **out);
/* One of arch (copied), whose parameters are zeros until lw_store_init. */
int lw_network_blank(const lw_network_def *def, const void *arch, lw_network **out);
/* Declares its parameters in a fresh store and fixes it. */
int lw_network_declare(lw_network *n, lw_store *s);
/* Parameters with gradients (without values) instead of the file's, and `training`. LW_EUSAGE: not
 * a generator. */
int lw_network_train(lw_network *n);

/* Values that a generator's input class takes. */
static inline int32_t lw_network_class_ids(const lw_network *n)
{
    return n->classes + (n->null_class ? 1 : 0);
}

/* For describe: its pictures are side x side, resized to that. */
void lw_network_square(lw_network *n, int32_t side);
/* Side of pictures to build it for: `asked`; when that is 0 its own; where it takes any that of its
 * preparation, or 32. */
int32_t lw_network_side(const lw_network *n, int32_t asked);
/* Builds the network on values of g; names of parameters and of g's scope do not mix. */
void lw_network_append(const lw_network *n, lw_graph *g, lw_network_in in, lw_taps *out);
/* What a generator draws for itself beside noise, of the streams WHO.latent and WHO.style. */
void lw_network_draw(const lw_network *n, lw_graph *g, const char *who, lw_val rows,
                     lw_network_in *in);
/* Declares inputs x f32[batch,h,w,C] (a generator: and t, class, latent, styles and condition where it has
 * them; in training rows) and outputs: the taps that `want` names (lw_taps_offer). LW_ESHAPE:
 * pictures it cannot take; LW_EUSAGE: no such tap, naming those there are. */
int lw_network_build(const lw_network *n, lw_graph *g, int32_t batch, int32_t h, int32_t w,
                     const char *want);

#endif
