/* module.c: tenure._core itself: reading of arguments, figures, exceptions, the module. */
#include "core.h"

core_types core;

bool core_size(PyObject *given, const char *what, size_t *size) {
	Py_ssize_t value = PyLong_AsSsize_t(given);
	if (TN_LIKELY(value >= 0)) {
		*size = (size_t)value;
		return true;
	}
	if (!PyErr_Occurred()) {
		PyErr_Format(PyExc_ValueError, "%s is negative: %R", what, given);
	} else if (PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		PyObject *index = PyNumber_Index(given);
		bool read = index != NULL && core_size(index, what, size);
		Py_XDECREF(index);
		return read;
	} else if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
		PyErr_Clear();
		PyObject *zero = PyLong_FromLong(0);
		int negative = zero == NULL ? -1 : PyObject_RichCompareBool(given, zero, Py_LT);
		Py_XDECREF(zero);
		if (negative >= 0)
			PyErr_Format(negative ? PyExc_ValueError : PyExc_MemoryError,
				negative ? "%s is negative: %R" : "%s is more than memory can hold: %R", what, given);
	}
	return false;
}

bool core_option(PyObject *given, const char *what, size_t *size) {
	if (given == Py_None)
		return true;
	if (!core_size(given, what, size))
		return false;
	if (*size != 0)
		return true;
	PyErr_Format(PyExc_ValueError, "%s is 0; None means the default", what);
	return false;
}

bool core_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
	*type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	return *type != NULL && PyModule_AddType(module, *type) == 0;
}

bool core_begin_decay(PyObject *pool, double seconds) {
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyObject *module = PyImport_ImportModule("tenure._decay");
	PyObject *begun = module == NULL ? NULL : PyObject_CallMethod(module, "begin", "Od", pool, seconds);
	bool done = begun == Py_True;
	Py_XDECREF(begun);
	Py_XDECREF(module);
	PyErr_Clear(); /* the interpreter ends */
	PyErr_Restore(type, value, trace);
	return done;
}

bool core_check_decay(double seconds) {
	if (seconds > 0 && seconds < 1e9)
		return true;
	PyErr_SetString(PyExc_ValueError, "decay is a positive number of seconds");
	return false;
}

PyObject *core_stats(const tn_stats *stats) {
	return PyObject_CallFunction(core.stats, "snnnnnnnKKnn", stats->name, stats->live_bytes,
		stats->live_count, stats->cached_bytes, stats->reserved_bytes, stats->committed_bytes,
		stats->peak_bytes, stats->chunk_count, (unsigned long long)stats->refills,
		(unsigned long long)stats->resets, stats->slot_bytes, stats->slot_count);
}

PyObject *core_listed(const tn_listed *listed) {
	PyObject *stats = core_stats(&listed->stats);
	if (stats == NULL)
		return NULL;
	return PyObject_CallFunction(core.listed, "NsIKKK", stats, tn_kind_name(listed->kind),
		listed->depth, (unsigned long long)listed->id, (unsigned long long)listed->parent_id,
		(unsigned long long)listed->age_ms);
}

/* ---- the module ---- */

PyDoc_STRVAR(stale_doc, "A Block was used that its arena, slab or pool has forgotten.");

static bool core_add_others(PyObject *module) {
	PyObject *stats = PyImport_ImportModule("tenure._stats");
	core.stats = stats == NULL ? NULL : PyObject_GetAttrString(stats, "Stats");
	core.listed = core.stats == NULL ? NULL : PyObject_GetAttrString(stats, "Listed");
	Py_XDECREF(stats);
	core.stale_error =
		PyErr_NewExceptionWithDoc("tenure.StaleBlockError", stale_doc, PyExc_ValueError, NULL);
	return core.listed != NULL && core.stale_error != NULL &&
	       PyModule_AddObjectRef(module, "StaleBlockError", core.stale_error) == 0 &&
	       PyModule_AddIntConstant(module, "mode", TN_MODE) == 0;
}

static int core_exec(PyObject *module) {
	if (core.block != NULL) {
		PyErr_SetString(PyExc_ImportError, "tenure can be imported once in a process, by one "
										   "interpreter: sub-interpreters are refused");
		return -1;
	}
	return block_add_types(module) && arena_add_types(module) && slab_add_types(module) &&
	               pool_add_types(module) && numpy_add_functions(module) &&
	               watch_add_functions(module) && core_add_others(module)
	           ? 0
	           : -1;
}

static PyModuleDef_Slot core_slots[] = {
	{Py_mod_exec, core_exec},
	{0, NULL},
};

static struct PyModuleDef core_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tenure._core",
	.m_doc = "The compiled part of tenure.",
	.m_slots = core_slots,
};

PyMODINIT_FUNC PyInit__core(void) {
	return PyModuleDef_Init(&core_module);
}
