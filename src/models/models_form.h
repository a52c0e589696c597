/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network as another library's folder: its configuration, its preparation, and what its tensors are
 * called there. The way back of lw_network_open; each family's record writes what it reads.
 *
 *    lw_network ──lw_network_form_of──► config, preprocessor, naming, store ──► files
 */
#ifndef LW_MODELS_FORM_H
#define LW_MODELS_FORM_H

#include "models/models_network.h"

struct lw_network_form {
    const char *config_name;  /* of config's file */
    const char *weights_name; /* of the tensors' */
    json_t *config;
    json_t *preprocessor;    /* preprocessor_config.json; NULL: config says it */
    const lw_naming *naming; /* NULL: the store's names */
    lw_store *store;         /* NULL: the network's own */
    json_t *notes;           /* sentences: in what the library's network is not this one */
    /* Set by a record, for lw_network_form_of. */
    void *arch;    /* the same network in the library's terms; NULL: as it is */
    bool by_place; /* whose parameters have other names, in the same order */
    /* Entries of `to` that n's store has not, or in another shape (they are zero). NULL: none */
    void (*fill)(const lw_network *n, lw_store *to);
};

/* LW_EUNSUPPORTED: n's record has no form of that library (those it has are named), or the library has
 * no words for something. Cleared by lw_network_form_clear in any case. */
int lw_network_form_of(const lw_network *n, lw_library to, lw_network_form *out);
void lw_network_form_clear(lw_network_form *f);

/* For records: a sentence for the user. */
int lw_network_form_note(lw_network_form *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* That a library knows only one value: says so unless `same`. what: "'layer_norm_eps' 1e-05". */
int lw_network_form_only(const lw_network *n, lw_library to, bool same, const char *what);

#endif
