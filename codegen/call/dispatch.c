/* Calls of compiled programs on arrays like those of an earlier call, without Python between: dispatch.py. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <Python.h>
#include <numpy/ndarrayobject.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef Py_GIL_DISABLED
#error "a table is guarded by Python's lock"
#endif

enum { MOST_ARRAYS = 8, MOST_ENTRIES = 64, MOST_SPACE = 1 << 14, LINE = 64 };

/* One call: its form has for each input, then for each output, the number of its type, its rank and its extents. */
typedef struct {
    PyObject *plan; /* keeps the function and its sizes alive */
    void *function, *sizes;
    int inputs, outputs, is_brief, is_serial;
    Py_ssize_t length;
    npy_intp form[];
} entry;

/* The entries of a table stay until the table goes, so one that runs without Python's lock is there until it ends. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int count;
    entry *entries[MOST_ENTRIES];
} table;

/* the form of the array after this one, or NULL: C cannot read this array as it is, or it has another form */
static const npy_intp *fitting(const npy_intp *form, PyObject *given, int flags)
{
    if (Py_TYPE(given) != &PyArray_Type) return NULL;
    PyArrayObject *const array = (PyArrayObject *)given;
    const npy_intp rank = form[1], *const extents = form + 2, *const dims = PyArray_DIMS(array);
    if (PyArray_TYPE(array) != form[0] || PyArray_NDIM(array) != rank) return NULL;
    if (!PyArray_CHKFLAGS(array, flags) || PyArray_ISBYTESWAPPED(array)) return NULL;
    for (npy_intp n = 0; n < rank; ++n) {
        if (dims[n] != extents[n]) return NULL;
    }
    return extents + rank;
}

/* the entry for some inputs and threads, which is the first one from now on, and the forms of its outputs */
static entry *found(table *t, PyObject *const *given, Py_ssize_t count, long threads,
                    const npy_intp **outputs)
{
    for (int at = 0; at < t->count; ++at) {
        entry *const e = t->entries[at];
        const int is_right = e->inputs == count && (threads == 1 || e->is_serial);
        const npy_intp *form = is_right ? e->form : NULL;
        for (Py_ssize_t n = 0; n < count && form != NULL; ++n) {
            form = fitting(form, given[n], NPY_ARRAY_CARRAY_RO);
        }
        if (form == NULL) continue;
        t->entries[at] = t->entries[0];
        t->entries[0] = e;
        *outputs = form;
        return e;
    }
    return NULL;
}

static int run(void *f, void **p, int count)
{
#define P void *
    switch (count) {
    case 3: return ((int (*)(P, P, P))f)(p[0], p[1], p[2]);
    case 4: return ((int (*)(P, P, P, P))f)(p[0], p[1], p[2], p[3]);
    case 5: return ((int (*)(P, P, P, P, P))f)(p[0], p[1], p[2], p[3], p[4]);
    case 6: return ((int (*)(P, P, P, P, P, P))f)(p[0], p[1], p[2], p[3], p[4], p[5]);
    case 7: return ((int (*)(P, P, P, P, P, P, P))f)(p[0], p[1], p[2], p[3], p[4], p[5], p[6]);
    case 8:
        return ((int (*)(P, P, P, P, P, P, P, P))f)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
    case 9:
        return ((int (*)(P, P, P, P, P, P, P, P, P))f)(p[0], p[1], p[2], p[3], p[4], p[5], p[6],
                                                       p[7], p[8]);
    default:
        return ((int (*)(P, P, P, P, P, P, P, P, P, P))f)(p[0], p[1], p[2], p[3], p[4], p[5], p[6],
                                                          p[7], p[8], p[9]);
    }
#undef P
}

/* new arrays for the results, or those that are given, one or a tuple; whether there are all of them */
static int outputs_of(const entry *e, const npy_intp *form, PyObject *out, PyObject **results)
{
    if (out != Py_None) {
        const int is_tuple = PyTuple_CheckExact(out);
        if (e->outputs != (is_tuple ? PyTuple_GET_SIZE(out) : 1)) return 0;
        for (int n = 0; n < e->outputs && form != NULL; ++n) {
            results[n] = Py_NewRef(is_tuple ? PyTuple_GET_ITEM(out, n) : out);
            form = fitting(form, results[n], NPY_ARRAY_CARRAY);
        }
        return form != NULL;
    }
    for (int n = 0; n < e->outputs; ++n) {
        const int rank = (int)form[1];
        PyArray_Descr *const type = PyArray_DescrFromType((int)form[0]);
        results[n] =
            PyArray_NewFromDescr(&PyArray_Type, type, rank, form + 2, NULL, NULL, 0, NULL);
        if (results[n] == NULL) {
            PyErr_Clear();
            return 0;
        }
        form += 2 + rank;
    }
    return 1;
}

/* the results of a call, or NULL without an error: whoever called does it again, and tells what is wrong */
static PyObject *results_of(const entry *e, PyObject *const *given, const npy_intp *form,
                            PyObject *out)
{
    char workspace[MOST_SPACE + LINE];
    void *pointers[MOST_ARRAYS + 2];
    PyObject *results[MOST_ARRAYS] = {NULL}, *result = NULL;
    int count = 0, status = 0;
    if (!outputs_of(e, form, out, results)) goto end;
    pointers[count++] = e->sizes;
    for (int n = 0; n < e->inputs; ++n) {
        pointers[count++] = PyArray_DATA((PyArrayObject *)given[n]);
    }
    for (int n = 0; n < e->outputs; ++n) {
        pointers[count++] = PyArray_DATA((PyArrayObject *)results[n]);
    }
    pointers[count++] = workspace + (LINE - (uintptr_t)workspace % LINE) % LINE;
    if (e->is_brief) {
        status = run(e->function, pointers, count);
    } else {
        Py_BEGIN_ALLOW_THREADS
        status = run(e->function, pointers, count);
        Py_END_ALLOW_THREADS
    }
    if (status != 0) goto end;
    if (out == Py_None && e->outputs == 1) return results[0];
    result = out == Py_None ? PyTuple_New(e->outputs) : Py_NewRef(out);
    if (out != Py_None) goto end;
    for (int n = 0; n < e->outputs && result != NULL; ++n) {
        PyTuple_SET_ITEM(result, n, Py_NewRef(results[n]));
    }
    if (result == NULL) PyErr_Clear();
end:
    for (int n = 0; n < e->outputs; ++n) Py_XDECREF(results[n]);
    return result;
}

/* table(arrays, out, threads), for a tuple or a list that nobody else has, and an integer: the results, or None: the table
 * has no such call, or it failed */
static PyObject *call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    const int is_right = PyVectorcall_NARGS(count) == 3 && names == NULL;
    if (!is_right || !(PyTuple_Check(args[0]) || PyList_Check(args[0])) || !PyLong_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError,
                        "a table takes a tuple of arrays, an output or None, and threads");
        return NULL;
    }
    const npy_intp *form = NULL;
    PyObject *const *const given = PySequence_Fast_ITEMS(args[0]);
    int overflow;
    const long threads = PyLong_AsLongAndOverflow(args[2], &overflow);
    if (threads < 1) Py_RETURN_NONE;
    const Py_ssize_t inputs = PySequence_Fast_GET_SIZE(args[0]);
    const entry *const e = found((table *)self, given, inputs, threads, &form);
    PyObject *const result = e == NULL ? NULL : results_of(e, given, form, args[1]);
    return result == NULL ? Py_NewRef(Py_None) : result;
}

PyDoc_STRVAR(add_text,
             "add(plan, function, sizes, inputs, outputs, is_brief, is_serial, form): whether the "
             "table has room for a call that it does not have.");

static PyObject *add(PyObject *self, PyObject *args)
{
    table *const t = (table *)self;
    PyObject *plan, *form;
    Py_ssize_t function, sizes;
    int inputs, outputs, is_brief, is_serial;
    if (!PyArg_ParseTuple(args, "OnniippO!", &plan, &function, &sizes, &inputs, &outputs, &is_brief,
                          &is_serial, &PyTuple_Type, &form)) {
        return NULL;
    }
    const Py_ssize_t length = PyTuple_GET_SIZE(form);
    if (t->count == MOST_ENTRIES || outputs < 1 || MOST_ARRAYS < inputs + outputs) Py_RETURN_FALSE;
    entry *const e = PyMem_Malloc(sizeof(entry) + (size_t)length * sizeof(npy_intp));
    if (e == NULL) return PyErr_NoMemory();
    for (Py_ssize_t n = 0; n < length; ++n) {
        e->form[n] = PyLong_AsSsize_t(PyTuple_GET_ITEM(form, n));
    }
    int is_new = !PyErr_Occurred();
    for (int at = 0; at < t->count && is_new; ++at) {
        const entry *const other = t->entries[at];
        is_new = other->inputs != inputs || other->length != length ||
                 memcmp(other->form, e->form, (size_t)length * sizeof(npy_intp)) != 0;
    }
    if (!is_new) {
        PyMem_Free(e);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    e->plan = Py_NewRef(plan);
    e->function = (void *)function;
    e->sizes = (void *)sizes;
    e->inputs = inputs;
    e->outputs = outputs;
    e->is_brief = is_brief;
    e->is_serial = is_serial;
    e->length = length;
    t->entries[t->count++] = e;
    Py_RETURN_TRUE;
}

static PyObject *new_table(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)args;
    (void)names;
    table *const t = (table *)type->tp_alloc(type, 0);
    if (t != NULL) t->call = call;
    return (PyObject *)t;
}

static void free_table(PyObject *self)
{
    table *const t = (table *)self;
    for (int at = 0; at < t->count; ++at) {
        Py_DECREF(t->entries[at]->plan);
        PyMem_Free(t->entries[at]);
    }
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef methods[] = {{"add", add, METH_VARARGS, add_text}, {NULL, NULL, 0, NULL}};

/* No part of a cycle of garbage: a plan leads to a program and its libraries, never to the component of the table. */
static PyTypeObject Table = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dispatch.Table",
    .tp_basicsize = sizeof(table),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = PyDoc_STR("Calls of one component, by the forms of their arrays."),
    .tp_new = new_table,
    .tp_dealloc = free_table,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(table, call),
    .tp_methods = methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "dispatch", .m_size = -1, .m_doc = NULL};

PyMODINIT_FUNC PyInit_dispatch(void)
{
    import_array();
    if (PyType_Ready(&Table) < 0) return NULL;
    PyObject *const module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (PyModule_AddObjectRef(module, "Table", (PyObject *)&Table) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
