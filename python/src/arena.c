/* arena.c: Arena and Mark.
 *
 * An Arena's Blocks belong to levels, one more for each mark. A reset or rewind gives its level a new
 * number, which makes the Blocks with the old number stale without a visit.
 *
 * A reset never reuses lent memory: if there is any, the C arena is put aside until the last lent
 * Block dies, and the Arena goes on with a new one. A rewind past lent memory only
 * makes the Blocks stale; the memory waits for a later rewind or reset.
 *
 * Invariants:
 * I1  memory is NULL once closed, else the region of all live Blocks.
 * I2  Numbers of levels and marks are never used twice. */
#include "core.h"

typedef struct arena arena;

/* One C arena, with the buffer that it has when it is fixed. */
typedef struct memory {
	region region;
	tn_arena arena;
	size_t limit;       /* 0: none */
	size_t aside_bytes; /* counted in the Arena's while aside */
	char *buffer;
} memory;

struct arena {
	home home;
	memory *memory;
	size_t capacity, limit, chunk; /* 0: none given */
	size_t aside_bytes;            /* of memories put aside */
	uint64_t resets;
	uint64_t last_number;
	size_t level, level_room;
	level first_level;
	bool listed;
};

typedef struct mark {
	PyObject_HEAD arena *owner;
	size_t level;
	uint64_t number;
	tn_checkpoint at;
} mark;

/* ---- memory ---- */

static void memory_end(region *r) {
	memory *m = (memory *)r;
	((arena *)r->home)->aside_bytes -= m->aside_bytes;
	tn_arena_deinit(&m->arena);
	PyMem_Free(m->buffer);
	PyMem_Free(m);
}

/* New memory for `a`, of at most `limit` bytes (0: no limit); NULL without an exception. */
static memory *memory_new(arena *a, size_t limit) {
	memory *m = PyMem_Calloc(1, sizeof *m);
	if (m == NULL)
		return NULL;
	m->region.home = &a->home;
	m->region.end = memory_end;
	m->limit = limit;
	tn_arena_options options = {
		.name = a->listed ? a->home.name : NULL, .chunk_bytes = a->chunk, .limit_bytes = limit};
	if (a->capacity != 0) {
		options.buffer_bytes = (a->capacity + 15) & ~(size_t)15; /* a block of all of it fits */
		options.buffer = m->buffer = PyMem_Malloc(options.buffer_bytes);
		options.fixed = true;
	}
	if ((a->capacity == 0 || m->buffer != NULL) && tn_arena_init(&m->arena, &options))
		return m;
	PyMem_Free(m->buffer);
	PyMem_Free(m);
	return NULL;
}

static void arena_use(arena *a, memory *m) {
	a->memory = m;
	a->home.region = &m->region;
}

/* The bytes that memory may take while `aside` bytes wait for lent Blocks; 0: any. */
static size_t arena_room(const arena *a, size_t aside) {
	return a->limit == 0 ? 0 : aside < a->limit ? a->limit - aside : 1;
}

static size_t memory_bytes(const memory *m) {
	tn_stats stats;
	tn_arena_stats(&m->arena, &stats);
	return stats.committed_bytes;
}

/* The Arena has no use for this memory any more. */
static void arena_leave(arena *a, memory *old) {
	old->aside_bytes = memory_bytes(old);
	a->aside_bytes += old->aside_bytes;
	region_leave(&old->region);
}

/* Goes on with new memory. Returns false with BufferError when there is none. */
static bool arena_replace_memory(arena *a) {
	memory *old = a->memory;
	size_t aside = a->aside_bytes + (old->region.lent == 0 ? 0 : memory_bytes(old));
	memory *new = memory_new(a, arena_room(a, aside));
	if (new == NULL) {
		PyErr_Format(PyExc_BufferError,
			"arena '%s': no memory for a reset while %zu Blocks that were exported are referenced",
			a->home.name, old->region.lent);
		return false;
	}
	arena_use(a, new);
	arena_leave(a, old);
	return true;
}

/* ---- levels ---- */

/* Forgets the Blocks of level `to` and the levels above, which end. */
static void arena_forget(arena *a, size_t to) {
	for (; a->level > to; a->level--)
		a->home.levels[a->level] = (level){0, 0};
	a->home.levels[to].born = ++a->last_number;
}

/* Begins a level. Returns false with MemoryError. */
static bool arena_begin_level(arena *a) {
	if (a->level + 1 == a->level_room) {
		size_t room = a->level_room * 2 + 6;
		level *old = a->home.levels == &a->first_level ? NULL : a->home.levels;
		level *levels = PyMem_Realloc(old, room * sizeof *levels);
		if (levels == NULL) {
			PyErr_NoMemory();
			return false;
		}
		if (old == NULL)
			levels[0] = a->first_level;
		a->home.levels = levels;
		a->level_room = room;
	}
	a->level++;
	uint64_t number = ++a->last_number;
	a->home.levels[a->level] = (level){number, number};
	return true;
}

/* ---- life ---- */

static bool arena_check(const arena *a) {
	if (TN_LIKELY(a->memory != NULL))
		return true;
	PyErr_Format(PyExc_ValueError, "arena '%s' is closed", a->home.name);
	return false;
}

static PyObject *arena_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
	static char *names[] = {"capacity", "name", "limit", "chunk", NULL};
	PyObject *capacity = Py_None, *limit = Py_None, *chunk = Py_None;
	const char *name = NULL;
	size_t sizes[3] = {0};
	if (!PyArg_ParseTupleAndKeywords(
			args, keywords, "|O$zOO:Arena", names, &capacity, &name, &limit, &chunk) ||
		!core_option(capacity, "capacity", &sizes[0]) || !core_option(limit, "limit", &sizes[1]) ||
		!core_option(chunk, "chunk", &sizes[2]))
		return NULL;
	if (sizes[0] != 0 && (sizes[1] != 0 || sizes[2] != 0)) {
		PyErr_SetString(PyExc_ValueError, "capacity excludes limit and chunk: the arena never grows");
		return NULL;
	}
	allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	arena *a = (arena *)make(type, 0);
	if (a == NULL)
		return NULL;
	home_name(&a->home, "arena", name);
	a->listed = name != NULL;
	a->capacity = sizes[0];
	a->limit = sizes[1];
	a->chunk = sizes[2];
	a->level_room = 1;
	a->home.levels = &a->first_level;
	arena_forget(a, 0);
	memory *m = memory_new(a, a->limit);
	if (m == NULL) {
		PyErr_Format(errno == EINVAL ? PyExc_ValueError : PyExc_MemoryError,
			"arena '%s' cannot be made with these sizes", a->home.name);
		Py_DECREF((PyObject *)a);
		return NULL;
	}
	arena_use(a, m);
	return (PyObject *)a;
}

static void arena_end(arena *a) {
	memory *old = a->memory;
	a->memory = NULL;
	a->home.region = NULL;
	arena_leave(a, old);
}

static void arena_dealloc(PyObject *self) {
	arena *a = (arena *)self;
	PyTypeObject *type = Py_TYPE(self);
	if (a->memory != NULL)
		arena_end(a);
	if (a->home.levels != &a->first_level)
		PyMem_Free(a->home.levels);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF((PyObject *)type);
}

PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\n"
						"Ends the arena and forgets all its Blocks. Closing again does nothing.\n\n"
						"Raises BufferError, and changes nothing, while a Block is exported.");

static PyObject *arena_close(PyObject *self, PyObject *unused) {
	(void)unused;
	arena *a = (arena *)self;
	if (a->memory == NULL)
		Py_RETURN_NONE;
	if (!home_is_free(&a->home, 0, "close"))
		return NULL;
	arena_forget(a, 0);
	arena_end(a);
	Py_RETURN_NONE;
}

static PyObject *arena_enter(PyObject *self, PyObject *unused) {
	(void)unused;
	return arena_check((arena *)self) ? Py_NewRef(self) : NULL;
}

static PyObject *arena_exit(PyObject *self, PyObject *args) {
	(void)args;
	return arena_close(self, NULL);
}

/* ---- alloc ---- */

static TN_COLD PyObject *arena_refuse(const arena *a, size_t size) {
	if (a->capacity != 0)
		return PyErr_Format(PyExc_MemoryError, "arena '%s': no room for %zu bytes, its capacity is %zu",
			a->home.name, size, a->capacity);
	if (a->limit != 0)
		return PyErr_Format(PyExc_MemoryError, "arena '%s': no room for %zu bytes, its limit is %zu",
			a->home.name, size, a->limit);
	return PyErr_Format(PyExc_MemoryError, "arena '%s': no memory for %zu bytes", a->home.name, size);
}

static PyObject *arena_alloc_aligned(arena *a, size_t size, size_t align) {
	void *p = tn_arena_alloc(&a->memory->arena, size, align);
	return TN_LIKELY(p != NULL) ? block_new(&a->home, p, size, a->level) : arena_refuse(a, size);
}

PyDoc_STRVAR(alloc_doc,
	"alloc($self, size, /)\n--\n\n"
	"Returns a Block of size bytes, aligned to 16. Its contents are undefined.\n\n"
	"size  bytes; 0 is valid\n\n"
	"Raises MemoryError at the capacity or limit, and when there is no memory; the\n"
	"arena can be used as before. ValueError for a negative size or a closed arena.");

static PyObject *arena_alloc(PyObject *self, PyObject *given) {
	arena *a = (arena *)self;
	size_t size;
	if (!core_size(given, "size", &size) || !arena_check(a))
		return NULL;
	return arena_alloc_aligned(a, size, 0);
}

PyDoc_STRVAR(aligned_doc, "alloc_aligned($self, size, align, /)\n--\n\n"
						  "As alloc, at an alignment of your choice.\n\n"
						  "align  bytes, a power of two up to 1 MiB\n\n"
						  "Raises ValueError for another alignment.");

static PyObject *arena_aligned(PyObject *self, PyObject *const *args, Py_ssize_t count) {
	arena *a = (arena *)self;
	size_t size, align;
	if (count != 2)
		return PyErr_Format(PyExc_TypeError, "alloc_aligned takes a size and an alignment");
	if (!core_size(args[0], "size", &size) || !core_size(args[1], "align", &align) || !arena_check(a))
		return NULL;
	if (align == 0 || align > TN_ALIGN_MAX || (align & (align - 1)) != 0)
		return PyErr_Format(
			PyExc_ValueError, "align is a power of two up to %zu, not %zu", TN_ALIGN_MAX, align);
	return arena_alloc_aligned(a, size, align);
}

PyDoc_STRVAR(alloc_many_doc,
	"alloc_many($self, count, size, /)\n--\n\n"
	"Returns Blocks: count blocks of size bytes in a row, each aligned to 16. Takes the time of one\n"
	"alloc; blocks[i] makes a Block object when it is asked for.\n\n"
	"Raises as alloc.");

static PyObject *arena_alloc_many(PyObject *self, PyObject *const *args, Py_ssize_t given) {
	arena *a = (arena *)self;
	size_t count, size;
	if (given != 2)
		return PyErr_Format(PyExc_TypeError, "alloc_many takes a count and a size");
	if (!core_size(args[0], "count", &count) || !core_size(args[1], "size", &size) || !arena_check(a))
		return NULL;
	size_t stride = size == 0 ? 16 : (size + 15) & ~(size_t)15;
	size_t all = count > (size_t)PY_SSIZE_T_MAX / stride ? (size_t)PY_SSIZE_T_MAX : count * stride;
	PyObject *whole = arena_alloc_aligned(a, all, 0);
	return whole == NULL ? NULL : blocks_new(whole, size, stride, count);
}

PyDoc_STRVAR(copy_doc,
	"copy($self, data, /)\n--\n\n"
	"Returns a Block with the bytes of data.\n\n"
	"data  an object with a contiguous buffer: bytes, bytearray, memoryview, an array\n\n"
	"Raises as alloc; TypeError or BufferError when data has no such buffer.");

static PyObject *arena_copy(PyObject *self, PyObject *data) {
	arena *a = (arena *)self;
	Py_buffer from;
	if (PyObject_GetBuffer(data, &from, PyBUF_SIMPLE) < 0)
		return NULL;
	PyObject *b = arena_check(a) ? arena_alloc_aligned(a, (size_t)from.len, 0) : NULL;
	if (b != NULL && from.len != 0)
		memcpy(((block *)b)->data, from.buf, (size_t)from.len);
	PyBuffer_Release(&from);
	return b;
}

PyDoc_STRVAR(empty_doc,
	"empty($self, shape, dtype=float, /)\n--\n\n"
	"Returns a NumPy array in the arena, C-contiguous, aligned to 64, its contents undefined. The "
	"array\n"
	"is an export: reset, rewind and close are refused until it and all views of it are gone.\n\n"
	"shape  an int or a tuple of ints, elements in each dimension\n"
	"dtype  anything that numpy.dtype takes, except types that hold Python objects\n\n"
	"Raises as alloc; ValueError for a negative dimension or a dtype with objects; ImportError "
	"without\n"
	"NumPy.");

static PyObject *arena_empty(PyObject *self, PyObject *args) {
	PyObject *shape, *dtype = (PyObject *)&PyFloat_Type;
	if (!PyArg_ParseTuple(args, "O|O:empty", &shape, &dtype))
		return NULL;
	PyObject *module = PyImport_ImportModule("tenure._arrays");
	if (module == NULL)
		return NULL;
	PyObject *array = PyObject_CallMethod(module, "empty", "OOO", self, shape, dtype);
	Py_DECREF(module);
	return array;
}

/* ---- ends of Blocks ---- */

PyDoc_STRVAR(reset_doc, "reset($self, /)\n--\n\n"
						"Forgets all Blocks and keeps the memory for the next ones.\n\n"
						"Raises BufferError, and changes nothing, while a Block is exported.");

static PyObject *arena_reset(PyObject *self, PyObject *unused) {
	(void)unused;
	arena *a = (arena *)self;
	if (!arena_check(a) || !home_is_free(&a->home, 0, "reset"))
		return NULL;
	bool as_before = a->memory->region.lent == 0 && a->memory->limit == arena_room(a, a->aside_bytes);
	if (TN_LIKELY(as_before))
		tn_arena_reset(&a->memory->arena);
	else if (!arena_replace_memory(a))
		return NULL;
	a->resets++;
	arena_forget(a, 0);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(mark_doc, "mark($self, /)\n--\n\n"
					   "Returns a Mark: the position to which rewind takes the arena back.");

static PyObject *arena_mark(PyObject *self, PyObject *unused) {
	(void)unused;
	arena *a = (arena *)self;
	if (!arena_check(a))
		return NULL;
	mark *m = PyObject_New(mark, core.mark);
	if (m == NULL)
		return NULL;
	m->owner = NULL;
	if (!arena_begin_level(a)) {
		Py_DECREF((PyObject *)m);
		return NULL;
	}
	Py_INCREF((PyObject *)a);
	m->owner = a;
	m->level = a->level;
	m->number = a->home.levels[a->level].mark;
	m->at = tn_arena_mark(&a->memory->arena);
	return (PyObject *)m;
}

PyDoc_STRVAR(rewind_doc,
	"rewind($self, mark, /)\n--\n\n"
	"Forgets the Blocks that are newer than the mark; older ones stay. The mark stays valid, newer\n"
	"ones do not.\n\n"
	"Raises BufferError, and changes nothing, while a newer Block is exported; ValueError for a mark\n"
	"of another arena, and for one from before a reset or a rewind to an older mark.");

static PyObject *arena_rewind(PyObject *self, PyObject *given) {
	arena *a = (arena *)self;
	if (!Py_IS_TYPE(given, core.mark))
		return PyErr_Format(PyExc_TypeError, "rewind takes a Mark, not %R", Py_TYPE(given));
	mark *m = (mark *)given;
	if (!arena_check(a))
		return NULL;
	if (m->owner != a)
		return PyErr_Format(PyExc_ValueError, "arena '%s': the Mark is of another arena", a->home.name);
	if (a->home.levels[m->level].mark != m->number)
		return PyErr_Format(PyExc_ValueError,
			"arena '%s': the Mark ended with a reset or a rewind to an older one", a->home.name);
	if (!home_is_free(&a->home, m->level, "rewind"))
		return NULL;
	if (!home_has_lent(&a->home, m->level))
		tn_arena_rewind(&a->memory->arena, m->at);
	arena_forget(a, m->level);
	Py_RETURN_NONE;
}

/* ---- looking ---- */

PyDoc_STRVAR(
	trim_doc, "trim($self, /)\n--\n\nGives back the memory behind the last Block; returns bytes.");

static PyObject *arena_trim(PyObject *self, PyObject *unused) {
	(void)unused;
	arena *a = (arena *)self;
	return arena_check(a) ? PyLong_FromSize_t(tn_arena_trim(&a->memory->arena)) : NULL;
}

PyDoc_STRVAR(stats_doc,
	"stats($self, /)\n--\n\n"
	"Returns Stats, in bytes and counts. Memory that waits for exported Blocks of before a\n"
	"reset is in committed_bytes and reserved_bytes.");

static PyObject *arena_stats(PyObject *self, PyObject *unused) {
	(void)unused;
	arena *a = (arena *)self;
	if (!arena_check(a))
		return NULL;
	tn_stats stats;
	tn_arena_stats(&a->memory->arena, &stats);
	PyOS_snprintf(stats.name, sizeof stats.name, "%s", a->home.name);
	stats.resets = a->resets;
	stats.committed_bytes += a->aside_bytes;
	stats.reserved_bytes += a->aside_bytes;
	return core_stats(&stats);
}

PyDoc_STRVAR(verify_doc,
	"verify($self, /)\n--\n\n"
	"Walks the arena and returns True. A broken invariant ends the process with a message.");

static PyObject *arena_verify(PyObject *self, PyObject *unused) {
	(void)unused;
	arena *a = (arena *)self;
	return arena_check(a) ? PyBool_FromLong(tn_arena_verify(&a->memory->arena)) : NULL;
}

static PyObject *arena_repr(PyObject *self) {
	return home_repr((home *)self, ((arena *)self)->memory == NULL);
}

static PyObject *arena_get_closed(PyObject *self, void *unused) {
	(void)unused;
	return PyBool_FromLong(((arena *)self)->memory == NULL);
}

static PyGetSetDef arena_properties[] = {
	{"name", home_get_name, NULL, home_name_doc, NULL},
	{"closed", arena_get_closed, NULL, home_closed_doc, NULL},
	{"exports", home_get_exports, NULL, home_exports_doc, NULL},
	{0},
};

static PyMethodDef arena_methods[] = {
	{"alloc", arena_alloc, METH_O, alloc_doc},
	{"alloc_aligned", (PyCFunction)(void (*)(void))arena_aligned, METH_FASTCALL, aligned_doc},
	{"alloc_many", (PyCFunction)(void (*)(void))arena_alloc_many, METH_FASTCALL, alloc_many_doc},
	{"empty", arena_empty, METH_VARARGS, empty_doc},
	{"copy", arena_copy, METH_O, copy_doc},
	{"mark", arena_mark, METH_NOARGS, mark_doc},
	{"rewind", arena_rewind, METH_O, rewind_doc},
	{"reset", arena_reset, METH_NOARGS, reset_doc},
	{"trim", arena_trim, METH_NOARGS, trim_doc},
	{"close", arena_close, METH_NOARGS, close_doc},
	{"stats", arena_stats, METH_NOARGS, stats_doc},
	{"verify", arena_verify, METH_NOARGS, verify_doc},
	{"__enter__", arena_enter, METH_NOARGS, NULL},
	{"__exit__", arena_exit, METH_VARARGS, NULL},
	{0},
};

PyDoc_STRVAR(arena_doc,
	"Arena(capacity=None, *, name=None, limit=None, chunk=None)\n--\n\n"
	"Memory that is taken block by block and given back at once.\n\n"
	"capacity  bytes of an arena that never grows; taken now\n"
	"name      shown in messages and tenure.stats(); a named arena is listed there\n"
	"limit     bytes that it never exceeds as it grows\n"
	"chunk     bytes of its first chunk (default 65,536); chunks double up to 2 MiB\n\n"
	"A context manager: `with Arena() as arena:` closes it at the end. Several threads may use it in\n"
	"turn, as the GIL sees to.\n\n"
	"Raises ValueError for sizes that contradict each other; MemoryError.");

static PyType_Slot arena_slots[] = {
	{Py_tp_doc, (char *)arena_doc},
	{Py_tp_new, arena_new},
	{Py_tp_dealloc, arena_dealloc},
	{Py_tp_repr, arena_repr},
	{Py_tp_methods, arena_methods},
	{Py_tp_getset, arena_properties},
	{0, NULL},
};

static PyType_Spec arena_spec = {
	.name = "tenure.Arena",
	.basicsize = sizeof(arena),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = arena_slots,
};

static void mark_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	Py_XDECREF((PyObject *)((mark *)self)->owner);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

PyDoc_STRVAR(mark_type_doc, "A position in an arena, from Arena.mark for Arena.rewind.");

static PyType_Slot mark_slots[] = {
	{Py_tp_doc, (char *)mark_type_doc},
	{Py_tp_dealloc, mark_dealloc},
	{0, NULL},
};

static PyType_Spec mark_spec = {
	.name = "tenure.Mark",
	.basicsize = sizeof(mark),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = mark_slots,
};

bool arena_add_types(PyObject *module) {
	return core_add_type(module, &arena_spec, &core.arena) &&
	       core_add_type(module, &mark_spec, &core.mark);
}
