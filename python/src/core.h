/* core.h: what the files of tenure._core share.
 *
 * Everything here runs with the GIL held. A free-threaded interpreter takes the GIL back when it
 * imports the module, because the module does not say that it can do without. */
#ifndef TENURE_PYTHON_CORE_H
#define TENURE_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <structmember.h>
#include <tenure/tenure.h>

typedef struct block block;
typedef struct home home;
typedef struct region region;
typedef struct loan loan;

/* Memory that Blocks lie in. While it has lent Blocks, it is not handed out again. */
struct region {
	size_t lent; /* living Blocks that ever exported a buffer */
	home *home;
	bool aside;            /* the home has moved on: ends with its last lent Block */
	void (*end)(region *); /* NULL: ends with its home */
};

/* Blocks of one level are those between two marks. They are live while `born` is theirs. */
typedef struct level {
	uint64_t born; /* 0: no Block has it */
	uint64_t mark; /* the Mark that began the level */
} level;

/* The start of every object that hands out Blocks. A Block holds a reference to its home. */
struct home {
	PyObject_HEAD const char *kind; /* for messages: "arena" */
	char name[TN_NAME_BYTES + 1];
	level *levels;
	region *region;                      /* of the Blocks handed out now */
	size_t exports;                      /* of all its Blocks */
	loan *lent;                          /* of Blocks that ever exported a buffer, newest first */
	void (*take_back)(home *, block *b); /* a Block dies; NULL: nothing to do */
};

/* A piece of a home's memory; a cache line. */
struct block {
	PyObject_HEAD char *data;
	Py_ssize_t size;
	home *home; /* strong */
	uint64_t born;
	unsigned level;
	unsigned exports;
	loan *loan; /* NULL until it first exports a buffer */
};

/* One interpreter of a process has the module, once. */
typedef struct core_types {
	PyTypeObject *arena, *block, *blocks, *mark, *slab, *buffer_pool, *pool, *lease;
	PyObject *stats, *listed; /* tenure.Stats and tenure.Listed, NamedTuples */
	PyObject *stale_error;    /* StaleBlockError */
	/* Memory of the Block objects: dead ones that wait for the next alloc, a chain through `home`, and
	 * a slab behind them. */
	block *spare;
	size_t spare_count;
	tn_slab *block_slots;
} core_types;
extern core_types core;

/* ---- module.c ---- */

/* Reads a size or count. Returns false with TypeError, ValueError (negative) or, beyond any memory,
 * MemoryError. */
bool core_size(PyObject *given, const char *what, size_t *size);

/* Reads an option: None leaves *size as it is, and 0 is refused with ValueError. */
bool core_option(PyObject *given, const char *what, size_t *size);

/* Adds a heap type to the module and to `core`. */
bool core_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type);

/* Has `_decay` of a pool called at the end of each window of so many seconds, until it returns False.
 * Returns whether it will be; keeps an exception that is being raised, and raises none. */
bool core_begin_decay(PyObject *pool, double seconds);

/* Returns false with ValueError for a window that is not positive and finite. */
bool core_check_decay(double seconds);

/* A tenure.Stats, or NULL with an exception. */
PyObject *core_stats(const tn_stats *stats);

/* A tenure.Listed, or NULL with an exception. */
PyObject *core_listed(const tn_listed *listed);

/* Appends a tenure.Listed of each named Pool to the list. Returns false with an exception. */
bool pool_list(PyObject *list);

/* ---- block.c ---- */

/* A Block of `h` at level `at`, or NULL with MemoryError. */
static inline PyObject *block_new(home *h, void *data, size_t size, size_t at);

/* Whether its home has not forgotten it. */
static inline bool block_is_live(const block *b) {
	return b->home->levels[b->level].born == b->born;
}

/* Raises StaleBlockError; returns false. */
bool block_refuse_stale(const block *b);

/* Returns true when no Block of `h` at or above level `from` has an export; else raises BufferError,
 * which names the home, the count and the first holder. */
bool home_is_free(const home *h, size_t from, const char *action);

/* Whether a lent Block of level `from` or above, stale or not, lies in the home's present memory. */
bool home_has_lent(const home *h, size_t from);

/* Copies a name or, for NULL, the kind. */
void home_name(home *h, const char *kind, const char *name);

/* Properties that all homes have. */
PyObject *home_get_name(PyObject *self, void *unused);
PyObject *home_get_exports(PyObject *self, void *unused);
extern const char home_name_doc[], home_closed_doc[], home_exports_doc[];

/* `<tenure.Slab 'name', closed>` */
PyObject *home_repr(home *h, bool closed);

/* The Blocks that live are no longer the region's: ends it now, or with its last lent Block. */
void region_leave(region *r);

/* `count` blocks of `size` bytes in the memory of `whole`, whose reference it takes. */
PyObject *blocks_new(PyObject *whole, size_t size, size_t stride, size_t count);

/* ---- slab.c ---- */

typedef struct buffer_pool buffer_pool;

enum { BUFFER_ALIGN = 64 };

/* A buffer of `size` bytes, aligned to BUFFER_ALIGN, and whether it was not used before; NULL without
 * an exception. `give` takes it back with the same size. */
void *buffer_take(buffer_pool *p, size_t size, bool *fresh);
void buffer_give(buffer_pool *p, void *given, size_t size);

bool block_add_types(PyObject *module);
bool arena_add_types(PyObject *module);
bool slab_add_types(PyObject *module);
bool pool_add_types(PyObject *module);
bool numpy_add_functions(PyObject *module);
bool watch_add_functions(PyObject *module);

static inline PyObject *block_new(home *h, void *data, size_t size, size_t at) {
	block *b = core.spare;
	if (TN_LIKELY(b != NULL)) {
		core.spare = (block *)b->home;
		core.spare_count--;
	} else if ((b = tn_slab_alloc(core.block_slots)) == NULL) {
		return PyErr_NoMemory();
	}
	/* The type lives as long as the process, so its instances do not count as references to it. */
	Py_SET_REFCNT((PyObject *)b, 1);
	Py_SET_TYPE((PyObject *)b, core.block);
	Py_INCREF((PyObject *)h);
	b->data = data;
	b->size = (Py_ssize_t)size;
	b->home = h;
	b->born = h->levels[at].born;
	b->level = (unsigned)at;
	b->exports = 0;
	b->loan = NULL;
	return (PyObject *)b;
}

#endif
