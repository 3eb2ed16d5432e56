/* watch.c: the figures of all listed allocators, the watch and the live view. */
#include "core.h"

#include <watch/os_view.h>

static PyObject *watch_callback; /* NULL: no watch */

static bool add_listed(const tn_listed *listed, void *list) {
	PyObject *one = core_listed(listed);
	bool added = one != NULL && PyList_Append(list, one) == 0;
	Py_XDECREF(one);
	return added;
}

PyDoc_STRVAR(stats_doc,
	"stats($module, /)\n--\n\n"
	"Returns a list of Listed: the page layer, then every named allocator of the process, newest\n"
	"first, then every named Pool. A thread may use them meanwhile.");

static PyObject *watch_stats(PyObject *module, PyObject *unused) {
	(void)module;
	(void)unused;
	PyObject *list = PyList_New(0);
	if (list == NULL)
		return NULL;
	tn_stats_snapshot(add_listed, list);
	if (!PyErr_Occurred() && pool_list(list))
		return list;
	Py_DECREF(list);
	return NULL;
}

static void watch_call(tn_finding finding, const tn_listed *listed, const char *message, void *ctx) {
	(void)finding;
	(void)ctx;
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *callback = watch_callback;
	Py_XINCREF(callback);
	PyObject *found = callback == NULL ? NULL : core_listed(listed);
	PyObject *done = found == NULL ? NULL : PyObject_CallFunction(callback, "Os", found, message);
	if (PyErr_Occurred())
		PyErr_WriteUnraisable(callback);
	Py_XDECREF(done);
	Py_XDECREF(found);
	Py_XDECREF(callback);
	PyGILState_Release(state);
}

PyDoc_STRVAR(watch_doc,
	"_watch($module, callback, interval_ms, growing_ms, idle_ms, least_bytes, /)\n--\n\n"
	"As tenure.watch; a callback of None ends it.");

static PyObject *watch_start(PyObject *module, PyObject *args) {
	(void)module;
	PyObject *callback;
	tn_watch_options options = {0};
	if (!PyArg_ParseTuple(args, "OIIIn:_watch", &callback, &options.interval_ms, &options.growing_ms,
			&options.idle_ms, &options.least_bytes))
		return NULL;
	bool ends = callback == Py_None;
	if (!ends && !PyCallable_Check(callback))
		return PyErr_Format(PyExc_TypeError, "%R cannot be called", callback);
	/* The earlier callback may run until tn_watch returns, and needs the GIL for it. */
	PyObject *before = watch_callback;
	watch_callback = ends ? NULL : Py_NewRef(callback);
	bool on;
	Py_BEGIN_ALLOW_THREADS;
	on = tn_watch(&options, ends ? NULL : watch_call);
	Py_END_ALLOW_THREADS;
	Py_XDECREF(before);
	if (ends || on)
		Py_RETURN_NONE;
	Py_CLEAR(watch_callback);
	return PyErr_SetFromErrno(PyExc_OSError);
}

PyDoc_STRVAR(live_doc,
	"live($module, on=True, /)\n--\n\n"
	"Shows the process's named allocators to the program tenure-top, run by the same user, or\n"
	"stops that.\n\n"
	"Raises OSError on a system that cannot.");

static PyObject *watch_live(PyObject *module, PyObject *args) {
	(void)module;
	int on = 1;
	if (!PyArg_ParseTuple(args, "|p:live", &on))
		return NULL;
	if (!on)
		tn_live_stop();
	else if (!tn_live_start())
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

static PyObject *watch_bytes(uint64_t bytes) {
	if (bytes == TN_LIVE_UNKNOWN)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLongLong(bytes);
}

PyDoc_STRVAR(process_doc,
	"_process($module, /)\n--\n\n"
	"Returns the resident bytes, the name of malloc, and the bytes that malloc has handed\n"
	"out and holds; None for what is not known.");

static PyObject *watch_process(PyObject *module, PyObject *unused) {
	(void)module;
	(void)unused;
	tn_live_state state = {0};
	tn_os_find_malloc();
	tn_os_read_process(&state);
	return Py_BuildValue("KsNN", (unsigned long long)state.resident_bytes, state.malloc_name,
		watch_bytes(state.malloc_allocated_bytes), watch_bytes(state.malloc_held_bytes));
}

static PyMethodDef functions[] = {
	{"_process", watch_process, METH_NOARGS, process_doc},
	{"stats", watch_stats, METH_NOARGS, stats_doc},
	{"_watch", watch_start, METH_VARARGS, watch_doc},
	{"live", watch_live, METH_VARARGS, live_doc},
	{0},
};

bool watch_add_functions(PyObject *module) {
	return PyModule_AddFunctions(module, functions) == 0;
}
