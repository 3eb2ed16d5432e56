/* block.c: Blocks, which are pieces of a home's memory, and Blocks in a row.
 *
 * A Block that never exported a buffer has no pointer outside, so its memory is the home's as soon as
 * it is stale. One that did is lent: some extensions (numpy.ndarray with `buffer=`) release the buffer
 * and go on to use the memory while they keep the Block. So what is lent stays until the Block dies.
 *
 * Invariants:
 * I1  home->exports is the sum of its Blocks' exports.
 * I2  A Block is in home->lent, and counted in its region, from its first export to its death. */
#include "core.h"

enum { SPARE_MAX = 64 };

/* ---- lending ---- */

/* The entry of a lent Block in its home's list. */
struct loan {
	block *block;
	region *region;
	loan *next, *previous;
};

static bool block_lend(block *b) {
	home *h = b->home;
	loan *l = PyMem_Malloc(sizeof *l);
	if (l == NULL) {
		PyErr_NoMemory();
		return false;
	}
	*l = (loan){b, h->region, h->lent, NULL};
	l->region->lent++;
	if (h->lent != NULL)
		h->lent->previous = l;
	h->lent = b->loan = l;
	return true;
}

static void block_unlend(block *b) {
	loan *l = b->loan;
	region *r = l->region;
	if (l->next != NULL)
		l->next->previous = l->previous;
	if (l->previous != NULL)
		l->previous->next = l->next;
	else
		b->home->lent = l->next;
	PyMem_Free(l);
	r->lent--;
	if (r->aside && r->lent == 0)
		r->end(r);
}

void region_leave(region *r) {
	r->aside = true;
	if (r->lent == 0)
		r->end(r);
}

bool home_has_lent(const home *h, size_t from) {
	for (const loan *l = h->lent; l != NULL; l = l->next)
		if (l->block->level >= from && l->region == h->region)
			return true;
	return false;
}

bool home_is_free(const home *h, size_t from, const char *action) {
	if (h->exports == 0)
		return true;
	size_t count = 0;
	const block *first = NULL;
	for (const loan *l = h->lent; l != NULL; l = l->next)
		if (l->block->exports != 0 && l->block->level >= from) {
			count += l->block->exports;
			first = l->block;
		}
	if (first == NULL)
		return true;
	PyErr_Format(PyExc_BufferError, "%s '%s': no %s while %zu buffer%s exported (first: %R)", h->kind,
		h->name, action, count, count == 1 ? " is" : "s are", first);
	return false;
}

void home_name(home *h, const char *kind, const char *name) {
	h->kind = kind;
	PyOS_snprintf(h->name, sizeof h->name, "%s", name == NULL ? kind : name);
}

const char home_name_doc[] = "Its name, cut to 31 bytes.";
const char home_closed_doc[] = "Whether it has been closed.";
const char home_exports_doc[] = "Buffers of its Blocks that are exported now: memoryviews, arrays.";

PyObject *home_get_name(PyObject *self, void *unused) {
	(void)unused;
	return PyUnicode_FromString(((home *)self)->name);
}

PyObject *home_get_exports(PyObject *self, void *unused) {
	(void)unused;
	return PyLong_FromSize_t(((home *)self)->exports);
}

PyObject *home_repr(home *h, bool closed) {
	PyObject *type = PyType_GetQualName(Py_TYPE((PyObject *)h));
	PyObject *text = type == NULL ? NULL
	                              : PyUnicode_FromFormat(
										"<tenure.%U '%s'%s>", type, h->name, closed ? ", closed" : "");
	Py_XDECREF(type);
	return text;
}

/* ---- Block ---- */

bool block_refuse_stale(const block *b) {
	PyErr_Format(core.stale_error, "%s '%s' has forgotten this Block of %zd bytes", b->home->kind,
		b->home->name, b->size);
	return false;
}

static bool block_check(const block *b) {
	return TN_LIKELY(block_is_live(b)) || block_refuse_stale(b);
}

static void block_dealloc(PyObject *self) {
	block *b = (block *)self;
	home *h = b->home;
	if (TN_UNLIKELY(b->loan != NULL))
		block_unlend(b);
	if (h->take_back != NULL)
		h->take_back(h, b);
	if (TN_LIKELY(core.spare_count < SPARE_MAX)) {
		b->home = (home *)core.spare;
		core.spare = b;
		core.spare_count++;
	} else {
		tn_slab_free(core.block_slots, b);
	}
	Py_DECREF((PyObject *)h);
}

static int block_getbuffer(PyObject *self, Py_buffer *view, int flags) {
	block *b = (block *)self;
	if (!block_check(b)) {
		view->obj = NULL;
		return -1;
	}
	if ((b->loan == NULL && !block_lend(b)) ||
		PyBuffer_FillInfo(view, self, b->data, b->size, 0, flags) < 0) {
		view->obj = NULL;
		return -1;
	}
	b->exports++;
	b->home->exports++;
	return 0;
}

static void block_releasebuffer(PyObject *self, Py_buffer *view) {
	block *b = (block *)self;
	(void)view;
	b->exports--;
	b->home->exports--;
}

static Py_ssize_t block_length(PyObject *self) {
	return ((block *)self)->size;
}

/* The position that `key` names, or -1 with an exception. */
static Py_ssize_t block_position(const block *b, PyObject *key) {
	Py_ssize_t at = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (at == -1 && PyErr_Occurred())
		return -1;
	if (at < 0)
		at += b->size;
	if (at < 0 || at >= b->size) {
		PyErr_Format(PyExc_IndexError, "Block index out of range: it has %zd bytes", b->size);
		return -1;
	}
	return at;
}

/* The start and count of a slice without step; false with an exception. */
static bool block_slice(const block *b, PyObject *key, Py_ssize_t *start, Py_ssize_t *count) {
	Py_ssize_t stop, step;
	if (PySlice_Unpack(key, start, &stop, &step) < 0)
		return false;
	if (step != 1) {
		PyErr_SetString(
			PyExc_ValueError, "a Block is sliced without a step; memoryview(block) has steps");
		return false;
	}
	*count = PySlice_AdjustIndices(b->size, start, &stop, step);
	return true;
}

static PyObject *block_subscript(PyObject *self, PyObject *key) {
	const block *b = (block *)self;
	Py_ssize_t at, count;
	if (PyIndex_Check(key)) {
		at = block_position(b, key);
		return at < 0 || !block_check(b) ? NULL : PyLong_FromLong((unsigned char)b->data[at]);
	}
	if (!PySlice_Check(key))
		return PyErr_Format(
			PyExc_TypeError, "Block indices are integers or slices, not %R", Py_TYPE(key));
	if (!block_slice(b, key, &at, &count) || !block_check(b))
		return NULL;
	return PyBytes_FromStringAndSize(b->data + at, count);
}

static int block_assign_byte(const block *b, PyObject *key, PyObject *value) {
	Py_ssize_t at = block_position(b, key);
	if (at < 0)
		return -1;
	long byte = PyLong_AsLong(value);
	if (byte == -1 && PyErr_Occurred())
		return -1;
	if (byte < 0 || byte > 255) {
		PyErr_SetString(PyExc_ValueError, "byte must be in range(0, 256)");
		return -1;
	}
	if (!block_check(b)) /* behind the calls above, which may run code that resets its home */
		return -1;
	b->data[at] = (char)byte;
	return 0;
}

static int block_assign_slice(const block *b, PyObject *key, PyObject *value) {
	Py_ssize_t at, count;
	if (!block_slice(b, key, &at, &count))
		return -1;
	Py_buffer from;
	if (PyObject_GetBuffer(value, &from, PyBUF_SIMPLE) < 0)
		return -1;
	int result = -1;
	if (from.len != count)
		PyErr_Format(PyExc_ValueError, "%zd bytes do not fit a slice of %zd", from.len, count);
	else if (block_check(b)) {
		memmove(b->data + at, from.buf, (size_t)count);
		result = 0;
	}
	PyBuffer_Release(&from);
	return result;
}

static int block_assign(PyObject *self, PyObject *key, PyObject *value) {
	const block *b = (block *)self;
	if (value == NULL) {
		PyErr_SetString(PyExc_TypeError, "a Block has a fixed size");
		return -1;
	}
	if (PyIndex_Check(key))
		return block_assign_byte(b, key, value);
	if (PySlice_Check(key))
		return block_assign_slice(b, key, value);
	PyErr_Format(PyExc_TypeError, "Block indices are integers or slices, not %R", Py_TYPE(key));
	return -1;
}

static PyObject *block_repr(PyObject *self) {
	const block *b = (block *)self;
	return PyUnicode_FromFormat("<tenure.Block of %zd bytes, %s '%s'%s>", b->size, b->home->kind,
		b->home->name, block_is_live(b) ? "" : ", stale");
}

static PyObject *block_get_live(PyObject *self, void *unused) {
	(void)unused;
	return PyBool_FromLong(block_is_live((block *)self));
}

static PyGetSetDef block_properties[] = {
	{"live", block_get_live, NULL,
		PyDoc_STR("Whether the Block can be used: its home has not forgotten it."), NULL},
	{0},
};

PyDoc_STRVAR(block_doc,
	"A piece of memory of an arena, slab or buffer pool; these make it.\n\n"
	"It exports a writable buffer of unsigned bytes: memoryview(block), socket.recv_into(block),\n"
	"file.readinto(block), struct.pack_into(format, block, 0), numpy.frombuffer(block).\n"
	"block[i] is an int, block[i:j] a copy as bytes; both can be assigned to. len(block) is bytes.\n"
	"Its contents are undefined until written.\n\n"
	"Raises StaleBlockError when it was forgotten by a reset, rewind, close or free.");

static PyType_Slot block_slots[] = {
	{Py_tp_doc, (char *)block_doc},
	{Py_tp_dealloc, block_dealloc},
	{Py_tp_repr, block_repr},
	{Py_tp_getset, block_properties},
	{Py_bf_getbuffer, block_getbuffer},
	{Py_bf_releasebuffer, block_releasebuffer},
	{Py_mp_length, block_length},
	{Py_mp_subscript, block_subscript},
	{Py_mp_ass_subscript, block_assign},
	{0, NULL},
};

static PyType_Spec block_spec = {
	.name = "tenure.Block",
	.basicsize = sizeof(block),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = block_slots,
};

/* ---- Blocks ---- */

typedef struct blocks {
	PyObject_HEAD block *whole;
	size_t size, stride, count;
} blocks;

PyObject *blocks_new(PyObject *whole, size_t size, size_t stride, size_t count) {
	blocks *row = PyObject_New(blocks, core.blocks);
	if (row == NULL) {
		Py_DECREF(whole);
		return NULL;
	}
	row->whole = (block *)whole;
	row->size = size;
	row->stride = stride;
	row->count = count;
	return (PyObject *)row;
}

static void blocks_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF((PyObject *)((blocks *)self)->whole);
	PyObject_Free(self);
	Py_DECREF((PyObject *)type);
}

static Py_ssize_t blocks_length(PyObject *self) {
	return (Py_ssize_t)((blocks *)self)->count;
}

static PyObject *blocks_item(PyObject *self, Py_ssize_t at) {
	const blocks *row = (blocks *)self;
	const block *whole = row->whole;
	if (at < 0 || (size_t)at >= row->count) {
		PyErr_Format(PyExc_IndexError, "Blocks index out of range: there are %zu", row->count);
		return NULL;
	}
	if (!block_check(whole))
		return NULL;
	return block_new(whole->home, whole->data + (size_t)at * row->stride, row->size, whole->level);
}

static PyObject *blocks_repr(PyObject *self) {
	const blocks *row = (blocks *)self;
	return PyUnicode_FromFormat("<tenure.Blocks: %zu of %zu bytes, %s '%s'>", row->count, row->size,
		row->whole->home->kind, row->whole->home->name);
}

static PyMemberDef blocks_members[] = {
	{"whole", T_OBJECT_EX, offsetof(blocks, whole), READONLY,
		PyDoc_STR("The memory of all of them as one Block.")},
	{"size", T_PYSSIZET, offsetof(blocks, size), READONLY, PyDoc_STR("Bytes of each.")},
	{"stride", T_PYSSIZET, offsetof(blocks, stride), READONLY,
		PyDoc_STR("Bytes from the start of one to the start of the next.")},
	{0},
};

PyDoc_STRVAR(blocks_doc,
	"Many blocks of one size in a row, from Arena.alloc_many.\n\n"
	"len(blocks) is their number. blocks[i] makes the Block object at that moment; two\n"
	"calls make two Blocks of the same memory. Block i starts at byte i * stride of whole.");

static PyType_Slot blocks_slots[] = {
	{Py_tp_doc, (char *)blocks_doc},
	{Py_tp_dealloc, blocks_dealloc},
	{Py_tp_repr, blocks_repr},
	{Py_tp_members, blocks_members},
	{Py_sq_length, blocks_length},
	{Py_sq_item, blocks_item},
	{0, NULL},
};

static PyType_Spec blocks_spec = {
	.name = "tenure.Blocks",
	.basicsize = sizeof(blocks),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = blocks_slots,
};

bool block_add_types(PyObject *module) {
	core.block_slots = tn_slab_create(sizeof(block), 64, &(tn_slab_options){.expendable = true});
	if (core.block_slots == NULL) {
		PyErr_NoMemory();
		return false;
	}
	return core_add_type(module, &block_spec, &core.block) &&
	       core_add_type(module, &blocks_spec, &core.blocks);
}
