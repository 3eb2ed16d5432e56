/* slab.c: Slab and BufferPool, which give memory back Block by Block.
 *
 * A Block gives its memory back when it dies, or at `free` unless it was lent (block.c). */
#include "core.h"

/* ---- Slab ---- */

typedef struct slab {
	home home;
	region region;
	level level;
	tn_slab *slots; /* NULL once closed and no lent Block is left */
	size_t size;
	bool closed;
} slab;

/* The start that slabs and buffer pools have in common. */
static void home_begin(home *h, region *r, level *only, const char *kind, const char *name) {
	home_name(h, kind, name);
	h->levels = only;
	h->region = r;
	r->home = h;
	only->born = 1;
}

static bool home_check(const home *h, bool closed) {
	if (TN_LIKELY(!closed))
		return true;
	PyErr_Format(PyExc_ValueError, "%s '%s' is closed", h->kind, h->name);
	return false;
}

static void slab_take_back(home *h, block *b) {
	slab *s = (slab *)h;
	if (b->data != NULL && s->slots != NULL)
		tn_slab_free(s->slots, b->data);
}

static PyObject *slab_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
	static char *names[] = {"size", "name", "limit", NULL};
	PyObject *given, *limit = Py_None;
	const char *name = NULL;
	tn_slab_options options = {.expendable = true};
	size_t size;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$zO:Slab", names, &given, &name, &limit) ||
		!core_size(given, "size", &size) || !core_option(limit, "limit", &options.limit_bytes))
		return NULL;
	options.name = name;
	allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	slab *s = (slab *)make(type, 0);
	if (s == NULL)
		return NULL;
	home_begin(&s->home, &s->region, &s->level, "slab", name);
	s->home.take_back = slab_take_back;
	s->size = size;
	s->slots = tn_slab_create(size, 0, &options);
	if (s->slots != NULL)
		return (PyObject *)s;
	PyErr_Format(errno == EINVAL ? PyExc_ValueError : PyExc_MemoryError,
		"slab '%s' cannot be made with slots of %zu bytes", s->home.name, size);
	Py_DECREF((PyObject *)s);
	return NULL;
}

static void slab_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	tn_slab_destroy(((slab *)self)->slots);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF((PyObject *)type);
}

PyDoc_STRVAR(slab_alloc_doc,
	"alloc($self, /)\n--\n\n"
	"Returns a Block of the slab's size. Its slot goes back when the Block dies, or at\n"
	"free. Its contents are undefined.\n\n"
	"Raises MemoryError at the limit and when there is no memory.");

static PyObject *slab_alloc(PyObject *self, PyObject *unused) {
	(void)unused;
	slab *s = (slab *)self;
	if (!home_check(&s->home, s->closed))
		return NULL;
	void *slot = tn_slab_alloc(s->slots);
	if (slot == NULL)
		return PyErr_Format(
			PyExc_MemoryError, "slab '%s': no memory for a slot of %zu bytes", s->home.name, s->size);
	PyObject *b = block_new(&s->home, slot, s->size, 0);
	if (b == NULL)
		tn_slab_free(s->slots, slot);
	return b;
}

PyDoc_STRVAR(slab_free_doc, "free($self, block, /)\n--\n\n"
							"Ends a Block before it dies; then it is stale. Its slot is handed out "
							"next, unless the Block ever\n"
							"exported a buffer: then when it dies.\n\n"
							"Raises BufferError while the Block is exported; StaleBlockError for a "
							"stale one; ValueError for a\n"
							"Block of another owner.");

static PyObject *slab_free(PyObject *self, PyObject *given) {
	slab *s = (slab *)self;
	if (!Py_IS_TYPE(given, core.block))
		return PyErr_Format(PyExc_TypeError, "free takes a Block, not %R", Py_TYPE(given));
	block *b = (block *)given;
	if (b->home != &s->home)
		return PyErr_Format(PyExc_ValueError, "slab '%s': the Block is another's", s->home.name);
	if (!block_is_live(b)) {
		block_refuse_stale(b);
		return NULL;
	}
	if (b->exports != 0)
		return PyErr_Format(PyExc_BufferError,
			"slab '%s': no free while %zu buffers of %R are exported", s->home.name, (size_t)b->exports,
			b);
	b->born = 0;
	if (b->loan == NULL) {
		slab_take_back(&s->home, b);
		b->data = NULL;
	}
	Py_RETURN_NONE;
}

PyDoc_STRVAR(slab_close_doc, "close($self, /)\n--\n\n"
							 "Ends the slab and forgets all its Blocks. Closing again does nothing.\n\n"
							 "Raises BufferError, and changes nothing, while a Block is exported.");

static PyObject *slab_close(PyObject *self, PyObject *unused) {
	(void)unused;
	slab *s = (slab *)self;
	if (s->closed)
		Py_RETURN_NONE;
	if (!home_is_free(&s->home, 0, "close"))
		return NULL;
	s->closed = true;
	s->level.born = 0;
	if (s->region.lent == 0) { /* else when the slab dies, which is after its Blocks */
		tn_slab_destroy(s->slots);
		s->slots = NULL;
	}
	Py_RETURN_NONE;
}

PyDoc_STRVAR(slab_trim_doc, "trim($self, /)\n--\n\nGives back chunks without a Block; returns bytes.");

static PyObject *slab_trim(PyObject *self, PyObject *unused) {
	(void)unused;
	slab *s = (slab *)self;
	return home_check(&s->home, s->closed) ? PyLong_FromSize_t(tn_slab_trim(s->slots)) : NULL;
}

PyDoc_STRVAR(any_stats_doc, "stats($self, /)\n--\n\nReturns Stats, in bytes and counts.");

static PyObject *slab_stats(PyObject *self, PyObject *unused) {
	(void)unused;
	slab *s = (slab *)self;
	if (!home_check(&s->home, s->closed))
		return NULL;
	tn_stats stats;
	tn_slab_stats(s->slots, &stats);
	return core_stats(&stats);
}

PyDoc_STRVAR(any_verify_doc,
	"verify($self, /)\n--\n\n"
	"Walks the memory and returns True. A broken invariant ends the process with a message.");

static PyObject *slab_verify(PyObject *self, PyObject *unused) {
	(void)unused;
	slab *s = (slab *)self;
	return home_check(&s->home, s->closed) ? PyBool_FromLong(tn_slab_verify(s->slots)) : NULL;
}

PyDoc_STRVAR(enter_doc, "Returns itself; the end of the with statement closes it.");

static PyObject *slab_enter(PyObject *self, PyObject *unused) {
	(void)unused;
	return home_check(&((slab *)self)->home, ((slab *)self)->closed) ? Py_NewRef(self) : NULL;
}

static PyObject *slab_exit(PyObject *self, PyObject *args) {
	(void)args;
	return slab_close(self, NULL);
}

static PyObject *slab_repr(PyObject *self) {
	return home_repr((home *)self, ((slab *)self)->closed);
}

static PyMemberDef slab_members[] = {
	{"size", T_PYSSIZET, offsetof(slab, size), READONLY, PyDoc_STR("Bytes of each Block.")},
	{"closed", T_BOOL, offsetof(slab, closed), READONLY, home_closed_doc},
	{0},
};

static PyGetSetDef slab_properties[] = {
	{"name", home_get_name, NULL, home_name_doc, NULL},
	{"exports", home_get_exports, NULL, home_exports_doc, NULL},
	{0},
};

static PyMethodDef slab_methods[] = {
	{"alloc", slab_alloc, METH_NOARGS, slab_alloc_doc},
	{"free", slab_free, METH_O, slab_free_doc},
	{"trim", slab_trim, METH_NOARGS, slab_trim_doc},
	{"close", slab_close, METH_NOARGS, slab_close_doc},
	{"stats", slab_stats, METH_NOARGS, any_stats_doc},
	{"verify", slab_verify, METH_NOARGS, any_verify_doc},
	{"__enter__", slab_enter, METH_NOARGS, enter_doc},
	{"__exit__", slab_exit, METH_VARARGS, NULL},
	{0},
};

PyDoc_STRVAR(slab_doc,
	"Slab(size, *, name=None, limit=None)\n--\n\n"
	"Blocks of one size, given back one by one.\n\n"
	"size   bytes of each Block, at least 1\n"
	"name   shown in messages and tenure.stats(); a named slab is listed there\n"
	"limit  bytes that it never exceeds\n\n"
	"A context manager. Raises ValueError for a size that no chunk can hold; MemoryError.");

static PyType_Slot slab_slots[] = {
	{Py_tp_doc, (char *)slab_doc},
	{Py_tp_new, slab_new},
	{Py_tp_dealloc, slab_dealloc},
	{Py_tp_repr, slab_repr},
	{Py_tp_methods, slab_methods},
	{Py_tp_members, slab_members},
	{Py_tp_getset, slab_properties},
	{0, NULL},
};

static PyType_Spec slab_spec = {
	.name = "tenure.Slab",
	.basicsize = sizeof(slab),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slab_slots,
};

/* ---- BufferPool ---- */

/* Four classes between two powers of two, from 256 bytes to 256 MiB. Larger buffers are not kept. */
enum { LEAST_SHIFT = 8, MOST_SHIFT = 28, CLASSES = (MOST_SHIFT - LEAST_SHIFT) * 4 + 1 };

/* An idle buffer; the link is in its first bytes. */
typedef struct idle {
	struct idle *next;
} idle;

typedef struct size_class {
	idle *first;
	size_t count;
	size_t least, least_before; /* fewest idle in this window and in the one before */
} size_class;

struct buffer_pool {
	home home;
	region region;
	level level;
	tn_heap *heap; /* NULL once closed and no lent Block is left */
	size_t idle_bytes, max_bytes;
	size_t out_bytes, out_count; /* of living Blocks */
	PyObject *weak_references;
	double decay;
	bool decays; /* the decay thread knows it */
	bool closed;
	size_class classes[CLASSES];
};

/* The class of a size, and its bytes; NULL, and the size, where buffers are not kept. */
static size_class *class_of(buffer_pool *p, size_t size, size_t *bytes) {
	if (size <= (size_t)1 << LEAST_SHIFT) {
		*bytes = (size_t)1 << LEAST_SHIFT;
		return p->classes;
	}
	if (size > (size_t)1 << MOST_SHIFT) {
		*bytes = size;
		return NULL;
	}
	unsigned top = 63 - (unsigned)__builtin_clzll(size - 1); /* 2^top < size <= 2^(top + 1) */
	size_t step = (size_t)1 << (top - 2);
	size_t quarters = (size - 1) / step - 3; /* 1 to 4 above 2^top */
	*bytes = (quarters + 4) * step;
	return &p->classes[(top - LEAST_SHIFT) * 4 + quarters];
}

/* Gives back `count` idle buffers of a class. */
static void class_give_back(buffer_pool *p, size_t at, size_t count) {
	size_class *c = &p->classes[at];
	size_t bytes =
		at == 0 ? (size_t)1 << LEAST_SHIFT : ((at - 1) % 4 + 5) << (LEAST_SHIFT - 2 + (at - 1) / 4);
	p->idle_bytes -= count * bytes;
	c->count -= count;
	for (; count != 0; count--) {
		idle *buffer = c->first;
		c->first = buffer->next;
		tn_heap_free(p->heap, buffer);
	}
}

/* Gives back all idle buffers; returns their bytes. */
static size_t buffer_give_back(buffer_pool *p) {
	size_t bytes = p->idle_bytes;
	for (size_t i = 0; i < CLASSES; i++) {
		class_give_back(p, i, p->classes[i].count);
		p->classes[i].least = 0;
	}
	return bytes;
}

void buffer_give(buffer_pool *p, void *given, size_t size) {
	size_t bytes;
	size_class *c = class_of(p, size, &bytes);
	p->out_bytes -= bytes;
	p->out_count--;
	if (c == NULL || p->closed || p->idle_bytes + bytes > p->max_bytes) {
		tn_heap_free(p->heap, given);
		return;
	}
	idle *buffer = given;
	buffer->next = c->first;
	c->first = buffer;
	c->count++;
	p->idle_bytes += bytes;
	if (TN_UNLIKELY(!p->decays))
		p->decays = core_begin_decay((PyObject *)p, p->decay);
}

void *buffer_take(buffer_pool *p, size_t size, bool *fresh) {
	size_t bytes;
	size_class *c = class_of(p, size, &bytes);
	idle *buffer = c == NULL ? NULL : c->first;
	*fresh = buffer == NULL;
	if (TN_LIKELY(buffer != NULL)) {
		c->first = buffer->next;
		c->count--;
		if (c->count < c->least)
			c->least = c->count;
		p->idle_bytes -= bytes;
	} else if ((buffer = tn_heap_alloc(p->heap, bytes, BUFFER_ALIGN)) == NULL) {
		return NULL;
	}
	p->out_bytes += bytes;
	p->out_count++;
	return buffer;
}

static void buffer_take_back(home *h, block *b) {
	buffer_pool *p = (buffer_pool *)h;
	if (p->heap != NULL)
		buffer_give(p, b->data, (size_t)b->size);
}

static PyObject *buffer_pool_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
	static char *names[] = {"max_bytes", "name", "limit", "decay", NULL};
	PyObject *max_bytes = Py_None, *limit = Py_None;
	const char *name = NULL;
	double decay = 1;
	size_t max = (size_t)64 << 20;
	tn_heap_options options = {.expendable = true};
	if (!PyArg_ParseTupleAndKeywords(
			args, keywords, "|O$zOd:BufferPool", names, &max_bytes, &name, &limit, &decay) ||
		(max_bytes != Py_None && !core_size(max_bytes, "max_bytes", &max)) ||
		!core_option(limit, "limit", &options.limit_bytes) || !core_check_decay(decay))
		return NULL;
	options.name = name;
	allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	buffer_pool *p = (buffer_pool *)make(type, 0);
	if (p == NULL)
		return NULL;
	home_begin(&p->home, &p->region, &p->level, "buffer pool", name);
	p->home.take_back = buffer_take_back;
	p->max_bytes = max;
	p->decay = decay;
	p->heap = tn_heap_create(&options);
	if (p->heap != NULL)
		return (PyObject *)p;
	Py_DECREF((PyObject *)p);
	return PyErr_NoMemory();
}

static void buffer_pool_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	buffer_pool *p = (buffer_pool *)self;
	if (p->weak_references != NULL)
		PyObject_ClearWeakRefs(self);
	tn_heap_destroy(p->heap);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF((PyObject *)type);
}

PyDoc_STRVAR(get_doc,
	"get($self, size, /)\n--\n\n"
	"Returns a Block of size bytes, aligned to 64. Its buffer goes back to the pool when the\n"
	"Block dies. Its contents are undefined: it may hold what its last user wrote.\n\n"
	"Raises MemoryError at the limit and when there is no memory.");

static PyObject *buffer_pool_get(PyObject *self, PyObject *given) {
	buffer_pool *p = (buffer_pool *)self;
	size_t size;
	if (!core_size(given, "size", &size) || !home_check(&p->home, p->closed))
		return NULL;
	bool fresh;
	void *buffer = buffer_take(p, size, &fresh);
	if (buffer == NULL)
		return PyErr_Format(
			PyExc_MemoryError, "buffer pool '%s': no memory for %zu bytes", p->home.name, size);
	PyObject *b = block_new(&p->home, buffer, size, 0);
	if (b == NULL)
		buffer_give(p, buffer, size);
	return b;
}

PyDoc_STRVAR(
	buffer_trim_doc, "trim($self, /)\n--\n\nGives back all idle buffers; returns their bytes.");

static PyObject *buffer_pool_trim(PyObject *self, PyObject *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	if (!home_check(&p->home, p->closed))
		return NULL;
	size_t bytes = buffer_give_back(p);
	tn_heap_trim(p->heap);
	return PyLong_FromSize_t(bytes);
}

PyDoc_STRVAR(decay_doc,
	"_decay($self, /)\n--\n\n"
	"Ends a window: gives back the idle buffers that two windows did not need. Returns whether\n"
	"there are more. The decay thread calls it.");

static PyObject *buffer_pool_decay(PyObject *self, PyObject *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	for (size_t i = 0; i < CLASSES; i++) {
		size_class *c = &p->classes[i];
		size_t unneeded = c->least < c->least_before ? c->least : c->least_before;
		class_give_back(p, i, unneeded);
		c->least_before = c->least - unneeded;
		c->least = c->count;
	}
	if (p->heap != NULL)
		tn_heap_trim(p->heap);
	p->decays = p->idle_bytes != 0;
	return PyBool_FromLong(p->decays);
}

PyDoc_STRVAR(buffer_close_doc,
	"close($self, /)\n--\n\n"
	"Ends the pool and forgets all its Blocks. Closing again does nothing.\n\n"
	"Raises BufferError, and changes nothing, while a Block is exported.");

static PyObject *buffer_pool_close(PyObject *self, PyObject *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	if (p->closed)
		Py_RETURN_NONE;
	if (!home_is_free(&p->home, 0, "close"))
		return NULL;
	p->closed = true;
	p->level.born = 0;
	buffer_give_back(p);
	if (p->region.lent == 0) { /* else when the pool dies, which is after its Blocks */
		tn_heap_destroy(p->heap);
		p->heap = NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *buffer_pool_stats(PyObject *self, PyObject *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	if (!home_check(&p->home, p->closed))
		return NULL;
	tn_stats stats;
	tn_heap_stats(p->heap, &stats);
	stats.cached_bytes += stats.live_bytes - p->out_bytes;
	stats.live_bytes = p->out_bytes;
	stats.live_count = p->out_count;
	return core_stats(&stats);
}

static PyObject *buffer_pool_verify(PyObject *self, PyObject *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	return home_check(&p->home, p->closed) ? PyBool_FromLong(tn_heap_verify(p->heap)) : NULL;
}

static PyObject *buffer_pool_enter(PyObject *self, PyObject *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	return home_check(&p->home, p->closed) ? Py_NewRef(self) : NULL;
}

static PyObject *buffer_pool_exit(PyObject *self, PyObject *args) {
	(void)args;
	return buffer_pool_close(self, NULL);
}

static PyObject *buffer_pool_repr(PyObject *self) {
	return home_repr((home *)self, ((buffer_pool *)self)->closed);
}

static PyMethodDef buffer_pool_methods[] = {
	{"get", buffer_pool_get, METH_O, get_doc},
	{"trim", buffer_pool_trim, METH_NOARGS, buffer_trim_doc},
	{"close", buffer_pool_close, METH_NOARGS, buffer_close_doc},
	{"stats", buffer_pool_stats, METH_NOARGS, any_stats_doc},
	{"verify", buffer_pool_verify, METH_NOARGS, any_verify_doc},
	{"_decay", buffer_pool_decay, METH_NOARGS, decay_doc},
	{"__enter__", buffer_pool_enter, METH_NOARGS, enter_doc},
	{"__exit__", buffer_pool_exit, METH_VARARGS, NULL},
	{0},
};

static PyMemberDef buffer_pool_members[] = {
	{"__weaklistoffset__", T_PYSSIZET, offsetof(buffer_pool, weak_references), READONLY, NULL},
	{"closed", T_BOOL, offsetof(buffer_pool, closed), READONLY, home_closed_doc},
	{0},
};

PyDoc_STRVAR(buffer_pool_doc,
	"BufferPool(max_bytes=67108864, *, name=None, limit=None, decay=1.0)\n--\n\n"
	"Buffers of any size for input and output, used again.\n\n"
	"max_bytes  the most bytes of idle buffers\n"
	"name       shown in messages and tenure.stats(); a named pool is listed there, as a heap\n"
	"limit      bytes that it never exceeds, idle or not\n"
	"decay      seconds of a window; idle buffers that two windows in a row did not need go back\n\n"
	"Sizes are rounded up by at most a quarter, and to 256; buffers above 256 MiB are not kept. A\n"
	"context manager. Raises ValueError for negative sizes; MemoryError.");

static PyObject *buffer_pool_get_max(PyObject *self, void *unused) {
	(void)unused;
	return PyLong_FromSize_t(((buffer_pool *)self)->max_bytes);
}

static int buffer_pool_set_max(PyObject *self, PyObject *given, void *unused) {
	(void)unused;
	buffer_pool *p = (buffer_pool *)self;
	size_t max;
	if (given == NULL) {
		PyErr_SetString(PyExc_AttributeError, "max_bytes cannot be deleted");
		return -1;
	}
	if (!core_size(given, "max_bytes", &max))
		return -1;
	p->max_bytes = max;
	if (p->heap != NULL && p->idle_bytes > max) {
		buffer_give_back(p);
		tn_heap_trim(p->heap);
	}
	return 0;
}

static PyGetSetDef buffer_pool_properties[] = {
	{"name", home_get_name, NULL, home_name_doc, NULL},
	{"exports", home_get_exports, NULL, home_exports_doc, NULL},
	{"max_bytes", buffer_pool_get_max, buffer_pool_set_max,
		PyDoc_STR("The most bytes of idle buffers. Where more are idle when it is set, all go back."),
		NULL},
	{0},
};

static PyType_Slot buffer_pool_slots[] = {
	{Py_tp_doc, (char *)buffer_pool_doc},
	{Py_tp_new, buffer_pool_new},
	{Py_tp_dealloc, buffer_pool_dealloc},
	{Py_tp_repr, buffer_pool_repr},
	{Py_tp_methods, buffer_pool_methods},
	{Py_tp_members, buffer_pool_members},
	{Py_tp_getset, buffer_pool_properties},
	{0, NULL},
};

static PyType_Spec buffer_pool_spec = {
	.name = "tenure.BufferPool",
	.basicsize = sizeof(buffer_pool),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = buffer_pool_slots,
};

bool slab_add_types(PyObject *module) {
	return core_add_type(module, &slab_spec, &core.slab) &&
	       core_add_type(module, &buffer_pool_spec, &core.buffer_pool);
}
