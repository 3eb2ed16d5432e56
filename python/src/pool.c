/* pool.c: Pool, which keeps Python objects for their next users, and Lease.
 *
 * Each thread puts objects on a stack of its own and gets them from there; when it is empty, from any
 * other. The GIL is the lock. Calls of the factory, of reset and of an object's end may run any code,
 * so nothing of a stack is remembered across them.
 *
 * Invariants:
 * I1  idle is the sum of the stacks' counts, and at most max.
 * I2  A stack's least is at most its count.
 * I3  built is the sum of idle and out, and of those that reset works on. */
#include "core.h"

#include <base/os.h>

typedef struct stack {
	struct stack *next;
	const char *thread; /* the address of its thread_mark */
	PyObject **items;
	size_t count, room;
	size_t least, least_before; /* fewest in this window and in the one before */
} stack;

typedef struct pool {
	PyObject_HEAD PyObject *factory, *reset; /* reset: NULL for none */
	PyObject *weak_references;
	stack *stacks;
	stack *near; /* that of the thread that called last, or NULL */
	size_t idle, max, out, built;
	size_t object_bytes, most_built;
	uint64_t builds, id, since_ms;
	struct pool *older, *newer; /* of the named ones */
	double decay;
	bool decays; /* the decay thread knows it */
	bool closed;
	char name[TN_NAME_BYTES + 1];
} pool;

typedef struct lease {
	PyObject_HEAD pool *pool;
	PyObject *object; /* NULL unless entered */
} lease;

static pool *newest_named;

/* Its address tells threads apart. */
static TN_THREAD TN_THREAD_NEAR char thread_mark;

/* ---- stacks ---- */

/* The calling thread's stack, made if need be; NULL without memory. An empty stack of another thread
 * serves as well: that thread makes itself a new one. */
static TN_COLD stack *stack_find(pool *p, const char *thread) {
	stack *empty = NULL, *s;
	for (s = p->stacks; s != NULL && s->thread != thread; s = s->next)
		if (s->count == 0)
			empty = s;
	if (s == NULL && (s = empty) == NULL && (s = PyMem_Calloc(1, sizeof *s)) != NULL) {
		s->next = p->stacks;
		p->stacks = s;
	}
	if (s == NULL)
		return NULL;
	s->thread = thread;
	return p->near = s;
}

static inline stack *stack_mine(pool *p) {
	stack *s = p->near;
	return TN_LIKELY(s != NULL && s->thread == &thread_mark) ? s : stack_find(p, &thread_mark);
}

static PyObject *stack_pop(pool *p, stack *s) {
	p->idle--;
	s->count--;
	if (s->count < s->least)
		s->least = s->count;
	return s->items[s->count];
}

/* Any idle object, this thread's newest first; NULL when there is none. */
static inline PyObject *pool_pop(pool *p) {
	if (p->idle == 0)
		return NULL;
	stack *s = stack_mine(p);
	if (s == NULL || s->count == 0)
		for (s = p->stacks; s->count == 0; s = s->next)
			;
	return stack_pop(p, s);
}

/* Takes the reference to `object`, or drops it where the bound or memory says so. */
static void pool_push(pool *p, PyObject *object) {
	stack *s = p->closed || p->idle >= p->max ? NULL : stack_mine(p);
	if (s != NULL && s->count == s->room) {
		size_t room = s->room * 2 + 8;
		PyObject **items = PyMem_Realloc(s->items, room * sizeof *items);
		if (items == NULL) {
			s = NULL;
		} else {
			s->items = items;
			s->room = room;
		}
	}
	if (s == NULL) {
		p->built--;
		Py_DECREF(object);
		return;
	}
	s->items[s->count++] = object;
	p->idle++;
	if (TN_UNLIKELY(!p->decays))
		p->decays = core_begin_decay((PyObject *)p, p->decay);
}

/* Drops the `count` objects of `s` that have been idle longest. */
static void stack_drop(pool *p, stack *s, size_t count) {
	if (count == 0)
		return;
	PyObject **dropped = PyMem_Malloc(count * sizeof *dropped);
	if (dropped == NULL)
		return; /* the next window tries again */
	memcpy(dropped, s->items, count * sizeof *dropped);
	s->count -= count;
	memmove(s->items, s->items + count, s->count * sizeof *s->items);
	s->least -= count;
	p->idle -= count;
	p->built -= count;
	for (size_t i = 0; i < count; i++)
		Py_DECREF(dropped[i]);
	PyMem_Free(dropped);
}

static size_t pool_drop_all(pool *p) {
	size_t dropped = 0;
	for (PyObject *object; (object = pool_pop(p)) != NULL; dropped++) {
		p->built--;
		Py_DECREF(object);
	}
	return dropped;
}

/* ---- life ---- */

/* Builds an object; NULL with the exception of the factory. */
static PyObject *pool_make(pool *p) {
	PyObject *factory = Py_NewRef(p->factory); /* a call may clear the pool */
	PyObject *object = PyObject_CallNoArgs(factory);
	Py_DECREF(factory);
	if (object == NULL)
		return NULL;
	p->builds++;
	if (++p->built > p->most_built)
		p->most_built = p->built;
	return object;
}

/* Builds idle objects, `count` or until there are max. Returns false with the exception of the
 * factory. */
static bool pool_fill(pool *p, size_t count) {
	for (; count > 0 && !p->closed && p->idle < p->max; count--) {
		PyObject *object = pool_make(p);
		if (object == NULL)
			return false;
		pool_push(p, object);
	}
	return true;
}

static void pool_link(pool *p) {
	static uint64_t last_id = UINT64_MAX; /* the core's ids count up from 1 */
	p->id = last_id--;
	p->since_ms = tn_os_milliseconds();
	p->older = newest_named;
	if (newest_named != NULL)
		newest_named->newer = p;
	newest_named = p;
}

static void pool_unlink(pool *p) {
	if (p->id == 0)
		return;
	if (p->newer != NULL)
		p->newer->older = p->older;
	else
		newest_named = p->older;
	if (p->older != NULL)
		p->older->newer = p->newer;
}

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
	static char *names[] = {
		"factory", "reset", "max", "prefill", "name", "decay", "object_bytes", NULL};
	PyObject *factory, *reset = Py_None, *max = Py_None, *prefill = Py_None;
	const char *name = NULL;
	size_t most = 1024, filled = 16;
	double decay = 1;
	Py_ssize_t object_bytes = 0;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OOOzdn:Pool", names, &factory, &reset, &max,
			&prefill, &name, &decay, &object_bytes) ||
		(max != Py_None && !core_size(max, "max", &most)) ||
		(prefill != Py_None && !core_size(prefill, "prefill", &filled)) || !core_check_decay(decay))
		return NULL;
	if (object_bytes < 0)
		return PyErr_Format(PyExc_ValueError, "object_bytes is negative: %zd", object_bytes);
	if (!PyCallable_Check(factory) || (reset != Py_None && !PyCallable_Check(reset)))
		return PyErr_Format(PyExc_TypeError, "factory and reset are callables");
	allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	pool *p = (pool *)make(type, 0);
	if (p == NULL)
		return NULL;
	PyOS_snprintf(p->name, sizeof p->name, "%s", name == NULL ? "pool" : name);
	p->factory = Py_NewRef(factory);
	p->reset = reset == Py_None ? NULL : Py_NewRef(reset);
	p->max = most;
	p->decay = decay;
	p->object_bytes = (size_t)object_bytes;
	if (!pool_fill(p, filled)) {
		Py_DECREF((PyObject *)p);
		return NULL;
	}
	if (name != NULL)
		pool_link(p);
	return (PyObject *)p;
}

static int pool_traverse(PyObject *self, visitproc visit, void *arg) {
	pool *p = (pool *)self;
	Py_VISIT((PyObject *)Py_TYPE(self));
	Py_VISIT(p->factory);
	Py_VISIT(p->reset);
	for (stack *s = p->stacks; s != NULL; s = s->next)
		for (size_t i = 0; i < s->count; i++)
			Py_VISIT(s->items[i]);
	return 0;
}

static int pool_clear(PyObject *self) {
	pool *p = (pool *)self;
	p->closed = true;
	pool_drop_all(p);
	Py_CLEAR(p->factory);
	Py_CLEAR(p->reset);
	return 0;
}

static void pool_dealloc(PyObject *self) {
	pool *p = (pool *)self;
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	pool_unlink(p);
	if (p->weak_references != NULL)
		PyObject_ClearWeakRefs(self);
	pool_clear(self);
	for (stack *s = p->stacks, *next; s != NULL; s = next) {
		next = s->next;
		PyMem_Free(s->items);
		PyMem_Free(s);
	}
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	release(self);
	Py_DECREF((PyObject *)type);
}

/* ---- get and put ---- */

static TN_COLD PyObject *pool_build(pool *p) {
	if (p->closed)
		return PyErr_Format(PyExc_ValueError, "pool '%s' is closed", p->name);
	PyObject *object = pool_make(p);
	if (object != NULL)
		p->out++;
	return object;
}

PyDoc_STRVAR(pool_get_doc, "get($self, /)\n--\n\n"
						   "Returns an object: the one that this thread put last, else one that "
						   "another thread put, else a new\n"
						   "one from the factory. `put` it once; `lease` does both.\n\n"
						   "Raises what the factory raises; ValueError for a closed pool.");

static PyObject *pool_get(PyObject *self, PyObject *unused) {
	(void)unused;
	pool *p = (pool *)self;
	PyObject *object = pool_pop(p);
	if (TN_UNLIKELY(object == NULL))
		return pool_build(p);
	p->out++;
	return object;
}

/* Returns false with the exception of reset; the object is gone then. */
static bool pool_give(pool *p, PyObject *object) {
	if (p->out != 0)
		p->out--;
	if (p->reset != NULL) {
		PyObject *reset = Py_NewRef(p->reset); /* a call may clear the pool */
		PyObject *done = PyObject_CallFunctionObjArgs(reset, object, NULL);
		Py_DECREF(reset);
		if (done == NULL) {
			p->built--;
			return false;
		}
		Py_DECREF(done);
	}
	pool_push(p, Py_NewRef(object));
	return true;
}

PyDoc_STRVAR(pool_put_doc,
	"put($self, object, /)\n--\n\n"
	"Gives an object back, which the caller must not use any more. `reset(object)` runs first. When "
	"the\n"
	"pool has max idle objects, it is dropped.\n\n"
	"Raises what reset raises, and drops the object; ValueError when more objects come than went.");

static PyObject *pool_put(PyObject *self, PyObject *object) {
	pool *p = (pool *)self;
	if (TN_UNLIKELY(p->out == 0))
		return PyErr_Format(PyExc_ValueError, "pool '%s': no object is out", p->name);
	if (!pool_give(p, object))
		return NULL;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(pool_lease_doc,
	"lease($self, /)\n--\n\n"
	"`with pool.lease() as object:` gets an object and puts it back at the end.");

static PyObject *pool_lease(PyObject *self, PyObject *unused) {
	(void)unused;
	lease *l = PyObject_GC_New(lease, core.lease);
	if (l == NULL)
		return NULL;
	l->pool = (pool *)Py_NewRef(self);
	l->object = NULL;
	PyObject_GC_Track((PyObject *)l);
	return (PyObject *)l;
}

PyDoc_STRVAR(pool_prefill_doc,
	"prefill($self, count, /)\n--\n\n"
	"Builds count idle objects more, or fewer where max is reached.\n\n"
	"Raises what the factory raises, and keeps the objects built before; ValueError for a negative\n"
	"count or a closed pool.");

static PyObject *pool_prefill(PyObject *self, PyObject *given) {
	pool *p = (pool *)self;
	size_t count;
	if (!core_size(given, "count", &count))
		return NULL;
	if (p->closed)
		return PyErr_Format(PyExc_ValueError, "pool '%s' is closed", p->name);
	if (!pool_fill(p, count))
		return NULL;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(pool_trim_doc, "trim($self, /)\n--\n\nDrops all idle objects; returns their number.");

static PyObject *pool_trim(PyObject *self, PyObject *unused) {
	(void)unused;
	return PyLong_FromSize_t(pool_drop_all((pool *)self));
}

PyDoc_STRVAR(pool_decay_doc,
	"_decay($self, /)\n--\n\n"
	"Ends a window: drops the idle objects that two windows did not need. Returns whether\n"
	"there are more. The decay thread calls it.");

static PyObject *pool_decay(PyObject *self, PyObject *unused) {
	(void)unused;
	pool *p = (pool *)self;
	for (stack *s = p->stacks; s != NULL; s = s->next) {
		stack_drop(p, s, s->least < s->least_before ? s->least : s->least_before);
		s->least_before = s->least; /* of those that are left */
		s->least = s->count;
	}
	p->decays = p->idle != 0;
	return PyBool_FromLong(p->decays);
}

PyDoc_STRVAR(pool_close_doc,
	"close($self, /)\n--\n\n"
	"Drops the idle objects, and those that are out when they come back. Closing again does\n"
	"nothing.");

static PyObject *pool_close(PyObject *self, PyObject *unused) {
	(void)unused;
	((pool *)self)->closed = true;
	pool_drop_all((pool *)self);
	Py_RETURN_NONE;
}

static PyObject *pool_enter(PyObject *self, PyObject *unused) {
	(void)unused;
	pool *p = (pool *)self;
	return p->closed ? PyErr_Format(PyExc_ValueError, "pool '%s' is closed", p->name) : Py_NewRef(self);
}

static PyObject *pool_exit(PyObject *self, PyObject *args) {
	(void)args;
	return pool_close(self, NULL);
}

/* ---- looking ---- */

static tn_stats pool_read(const pool *p) {
	size_t bytes = p->object_bytes;
	tn_stats stats = {
		.live_bytes = p->out * bytes,
		.live_count = p->out,
		.cached_bytes = p->idle * bytes,
		.reserved_bytes = p->built * bytes,
		.committed_bytes = p->built * bytes,
		.peak_bytes = p->most_built * bytes,
		.refills = p->builds,
		.slot_bytes = bytes,
		.slot_count = p->built,
	};
	memcpy(stats.name, p->name, sizeof p->name);
	return stats;
}

PyDoc_STRVAR(pool_stats_doc,
	"stats($self, /)\n--\n\n"
	"Returns Stats: live_count objects are out, slot_count are built, refills were ever built. Bytes\n"
	"are those of object_bytes.");

static PyObject *pool_stats(PyObject *self, PyObject *unused) {
	(void)unused;
	tn_stats stats = pool_read((pool *)self);
	return core_stats(&stats);
}

bool pool_list(PyObject *list) {
	bool added = true;
	pool *p = newest_named;
	Py_XINCREF((PyObject *)p); /* a collection in between may end any pool */
	while (p != NULL) {
		tn_listed listed = {.stats = pool_read(p),
			.kind = TN_KIND_POOL,
			.id = p->id,
			.age_ms = tn_os_milliseconds() - p->since_ms};
		PyObject *one = core_listed(&listed);
		added = one != NULL && PyList_Append(list, one) == 0;
		Py_XDECREF(one);
		pool *older = added ? p->older : NULL;
		Py_XINCREF((PyObject *)older);
		Py_DECREF((PyObject *)p);
		p = older;
	}
	return added;
}

PyDoc_STRVAR(pool_verify_doc,
	"verify($self, /)\n--\n\n"
	"Walks the idle objects and returns True. A broken invariant ends the process with a message.");

static PyObject *pool_verify(PyObject *self, PyObject *unused) {
	(void)unused;
	const pool *p = (pool *)self;
	size_t idle = 0;
	for (const stack *s = p->stacks; s != NULL; s = s->next) {
		idle += s->count;
		if (s->least > s->count)
			Py_FatalError("tenure: pool: I2: more were idle all the time than are now");
	}
	if (idle != p->idle || p->idle > p->max)
		Py_FatalError("tenure: pool: I1: the count of idle objects is wrong");
	if (p->built < p->idle + p->out)
		Py_FatalError("tenure: pool: I3: objects are neither idle nor out");
	Py_RETURN_TRUE;
}

static PyObject *pool_repr(PyObject *self) {
	const pool *p = (pool *)self;
	return PyUnicode_FromFormat("<tenure.Pool '%s'%s>", p->name, p->closed ? ", closed" : "");
}

static PyMethodDef pool_methods[] = {
	{"lease", pool_lease, METH_NOARGS, pool_lease_doc},
	{"get", pool_get, METH_NOARGS, pool_get_doc},
	{"put", pool_put, METH_O, pool_put_doc},
	{"prefill", pool_prefill, METH_O, pool_prefill_doc},
	{"trim", pool_trim, METH_NOARGS, pool_trim_doc},
	{"close", pool_close, METH_NOARGS, pool_close_doc},
	{"stats", pool_stats, METH_NOARGS, pool_stats_doc},
	{"verify", pool_verify, METH_NOARGS, pool_verify_doc},
	{"_decay", pool_decay, METH_NOARGS, pool_decay_doc},
	{"__enter__", pool_enter, METH_NOARGS,
		PyDoc_STR("Returns the pool; the end of the with statement closes it.")},
	{"__exit__", pool_exit, METH_VARARGS, NULL},
	{0},
};

static PyMemberDef pool_members[] = {
	{"__weaklistoffset__", T_PYSSIZET, offsetof(pool, weak_references), READONLY, NULL},
	{"idle", T_PYSSIZET, offsetof(pool, idle), READONLY, PyDoc_STR("Objects that wait for a user.")},
	{"out", T_PYSSIZET, offsetof(pool, out), READONLY, PyDoc_STR("Objects that users have.")},
	{"built", T_PYSSIZET, offsetof(pool, built), READONLY, PyDoc_STR("Objects idle or out.")},
	{"closed", T_BOOL, offsetof(pool, closed), READONLY, home_closed_doc},
	{0},
};

static PyObject *pool_get_name(PyObject *self, void *unused) {
	(void)unused;
	return PyUnicode_FromString(((pool *)self)->name);
}

static PyGetSetDef pool_properties[] = {
	{"name", pool_get_name, NULL, home_name_doc, NULL},
	{0},
};

PyDoc_STRVAR(pool_doc,
	"Pool(factory, *, reset=None, max=1024, prefill=16, name=None, decay=1.0, object_bytes=0)\n--\n\n"
	"Objects that are costly to build, used again.\n\n"
	"factory  called without arguments for a new object\n"
	"reset    called with an object that is put back, to make it fit for its next user\n"
	"max      the most idle objects; more are dropped\n"
	"prefill  objects built now\n"
	"name     shown in messages and tenure.stats(); a named pool is listed there\n"
	"decay    seconds of a window; idle objects that two windows in a row did not need are dropped, "
	"on\n"
	"         a thread of the library\n"
	"object_bytes  bytes of one object, for stats\n\n"
	"Any thread may use it and put an object that another got. A context manager: its end closes it.");

static PyType_Slot pool_slots[] = {
	{Py_tp_doc, (char *)pool_doc},
	{Py_tp_new, pool_new},
	{Py_tp_dealloc, pool_dealloc},
	{Py_tp_traverse, pool_traverse},
	{Py_tp_clear, pool_clear},
	{Py_tp_repr, pool_repr},
	{Py_tp_methods, pool_methods},
	{Py_tp_members, pool_members},
	{Py_tp_getset, pool_properties},
	{0, NULL},
};

static PyType_Spec pool_spec = {
	.name = "tenure.Pool",
	.basicsize = sizeof(pool),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = pool_slots,
};

/* ---- Lease ---- */

static PyObject *lease_enter(PyObject *self, PyObject *unused) {
	(void)unused;
	lease *l = (lease *)self;
	if (l->object != NULL)
		return PyErr_Format(PyExc_ValueError, "pool '%s': the lease is entered already", l->pool->name);
	PyObject *object = pool_get((PyObject *)l->pool, NULL);
	if (object == NULL)
		return NULL;
	if (l->object != NULL) { /* the factory entered this lease */
		pool_push(l->pool, object);
		l->pool->out--;
		return PyErr_Format(PyExc_ValueError, "pool '%s': the lease is entered already", l->pool->name);
	}
	l->object = Py_NewRef(object);
	return object;
}

static PyObject *lease_exit(PyObject *self, PyObject *const *args, Py_ssize_t count) {
	(void)args;
	(void)count;
	lease *l = (lease *)self;
	PyObject *object = l->object;
	if (object == NULL)
		return PyErr_Format(PyExc_ValueError, "pool '%s': the lease is not entered", l->pool->name);
	l->object = NULL;
	bool given = pool_give(l->pool, object);
	Py_DECREF(object);
	if (!given)
		return NULL;
	Py_RETURN_NONE;
}

static int lease_traverse(PyObject *self, visitproc visit, void *arg) {
	Py_VISIT((PyObject *)Py_TYPE(self));
	Py_VISIT((PyObject *)((lease *)self)->pool);
	Py_VISIT(((lease *)self)->object);
	return 0;
}

/* A lease that was never left: the object dies with its last user. */
static void lease_dealloc(PyObject *self) {
	lease *l = (lease *)self;
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	if (l->object != NULL) {
		l->pool->out--;
		l->pool->built--;
		Py_DECREF(l->object);
	}
	Py_DECREF((PyObject *)l->pool);
	PyObject_GC_Del(self);
	Py_DECREF((PyObject *)type);
}

static PyMethodDef lease_methods[] = {
	{"__enter__", lease_enter, METH_NOARGS, PyDoc_STR("Gets the object.")},
	{"__exit__", (PyCFunction)(void (*)(void))lease_exit, METH_FASTCALL,
		PyDoc_STR("Puts the object back.")},
	{0},
};

PyDoc_STRVAR(lease_doc, "One use of a pool's object, from Pool.lease.");

static PyType_Slot lease_slots[] = {
	{Py_tp_doc, (char *)lease_doc},
	{Py_tp_dealloc, lease_dealloc},
	{Py_tp_traverse, lease_traverse},
	{Py_tp_methods, lease_methods},
	{0, NULL},
};

static PyType_Spec lease_spec = {
	.name = "tenure.Lease",
	.basicsize = sizeof(lease),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
	.slots = lease_slots,
};

bool pool_add_types(PyObject *module) {
	return core_add_type(module, &pool_spec, &core.pool) &&
	       core_add_type(module, &lease_spec, &core.lease);
}
