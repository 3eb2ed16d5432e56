/* numpy.c: memory for NumPy's arrays from a BufferPool (NEP 49).
 *
 * NumPy passes `free` a size that may differ from that of `malloc`, and `realloc` no old size. So each
 * array's memory has a head of its own in front. NumPy calls these functions with the GIL held. It
 * keeps the handler's capsule as long as an array lives, and the capsule keeps the pool. */
#include "core.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

/* NumPy's ABI: numpy/ndarraytypes.h, and places in the table of numpy.core.multiarray._ARRAY_API. */
typedef struct numpy_allocator {
	void *ctx;
	void *(*malloc)(void *ctx, size_t size);
	void *(*calloc)(void *ctx, size_t count, size_t size);
	void *(*realloc)(void *ctx, void *p, size_t size);
	void (*free)(void *ctx, void *p, size_t size);
} numpy_allocator;

typedef struct numpy_handler {
	char name[127];
	uint8_t version;
	numpy_allocator allocator;
} numpy_handler;

enum { SET_HANDLER = 304 };

/* From this size on NumPy asks for huge pages, and so do we. */
#define HUGE_BYTES ((size_t)4 << 20)

/* In front of an array's memory; as long as its alignment. */
typedef union head {
	struct {
		void *buffer;
		size_t buffer_size;
		size_t size; /* of the array */
	};
	char room[BUFFER_ALIGN];
} head;

/* Large arrays begin at different places in a page. A load that is whole pages from a store just before
 * it waits for that store, because the processor compares the low bits of their addresses first. */
enum { COLOURS = 7, COLOUR_BYTES = 512, COLOURED_FROM = 32 << 10 };

static void *array_malloc(void *ctx, size_t size) {
	static unsigned turn;
	if (size > (size_t)PY_SSIZE_T_MAX - 2 * COLOURS * COLOUR_BYTES)
		return NULL;
	bool coloured = size >= COLOURED_FROM;
	size_t buffer_size = size + sizeof(head) + (coloured ? COLOURS * COLOUR_BYTES : 0);
	bool fresh;
	char *buffer = buffer_take(ctx, buffer_size, &fresh);
	if (buffer == NULL)
		return NULL;
#if defined(__linux__)
	if (fresh && size >= HUGE_BYTES) {
		uintptr_t page = 4096, begin = ((uintptr_t)buffer + page - 1) & ~(page - 1);
		uintptr_t end = ((uintptr_t)buffer + buffer_size) & ~(page - 1);
		madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* advice: a refusal changes nothing */
	}
#endif
	head *h = (head *)(buffer + (coloured ? (1 + turn++ % COLOURS) * COLOUR_BYTES : 0));
	h->buffer = buffer;
	h->buffer_size = buffer_size;
	h->size = size;
	return h + 1;
}

static void array_free(void *ctx, void *p, size_t unreliable) {
	(void)unreliable;
	if (p == NULL)
		return;
	head *h = (head *)p - 1;
	buffer_give(ctx, h->buffer, h->buffer_size);
}

static void *array_calloc(void *ctx, size_t count, size_t size) {
	if (size != 0 && count > (size_t)PY_SSIZE_T_MAX / size)
		return NULL;
	void *p = array_malloc(ctx, count * size);
	return p == NULL ? NULL : memset(p, 0, count * size);
}

static void *array_realloc(void *ctx, void *old, size_t size) {
	void *p = array_malloc(ctx, size);
	if (p == NULL || old == NULL)
		return p;
	size_t old_size = ((head *)old - 1)->size;
	memcpy(p, old, old_size < size ? old_size : size);
	array_free(ctx, old, 0);
	return p;
}

static void handler_end(PyObject *capsule) {
	numpy_handler *handler = PyCapsule_GetPointer(capsule, "mem_handler");
	Py_DECREF((PyObject *)handler->allocator.ctx);
	PyMem_Free(handler);
}

/* numpy_handler(pool): a capsule for numpy_use. */
static PyObject *numpy_make_handler(PyObject *module, PyObject *pool) {
	(void)module;
	if (!Py_IS_TYPE(pool, core.buffer_pool))
		return PyErr_Format(PyExc_TypeError, "not a BufferPool: %R", pool);
	numpy_handler *handler = PyMem_Calloc(1, sizeof *handler);
	if (handler == NULL)
		return PyErr_NoMemory();
	PyOS_snprintf(handler->name, sizeof handler->name, "tenure");
	handler->version = 1;
	handler->allocator = (numpy_allocator){pool, array_malloc, array_calloc, array_realloc, array_free};
	PyObject *capsule = PyCapsule_New(handler, "mem_handler", handler_end);
	if (capsule == NULL)
		PyMem_Free(handler);
	else
		Py_INCREF(pool);
	return capsule;
}

/* numpy_use(table, handler): has NumPy use the handler in this context; returns the one before. */
static PyObject *numpy_use(PyObject *module, PyObject *const *args, Py_ssize_t count) {
	(void)module;
	if (count != 2 || !PyCapsule_IsValid(args[1], "mem_handler"))
		return PyErr_Format(PyExc_TypeError, "numpy_use takes NumPy's table and a handler");
	void **table = PyCapsule_GetPointer(args[0], NULL);
	if (table == NULL)
		return NULL;
	PyObject *(*set)(PyObject *) = (PyObject * (*)(PyObject *)) table[SET_HANDLER];
	return set(args[1]);
}

static PyMethodDef functions[] = {
	{"numpy_handler", numpy_make_handler, METH_O, NULL},
	{"numpy_use", (PyCFunction)(void (*)(void))numpy_use, METH_FASTCALL, NULL},
	{0},
};

bool numpy_add_functions(PyObject *module) {
	return PyModule_AddFunctions(module, functions) == 0;
}
