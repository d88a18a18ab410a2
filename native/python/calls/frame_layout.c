#define Py_BUILD_CORE 1
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_stackref.h>
#endif
#include <opcode.h>
#undef Py_BUILD_CORE
#include <string.h>

#include "python/calls/frame_layout.h"

#if PY_VERSION_HEX < 0x030D0000
#define HOLDER cframe
#else
#define HOLDER current_frame
#endif

#if PY_VERSION_HEX < 0x030C0000 /* the calls of C functions are in PRECALL */
#define OF_VERSION                                                                                                     \
  FORMAT_VALUE, BINARY_SUBSCR, PRECALL, PRECALL_ADAPTIVE, PRECALL_BUILTIN_CLASS, PRECALL_BUILTIN_FAST_WITH_KEYWORDS,   \
      PRECALL_METHOD_DESCRIPTOR_FAST_WITH_KEYWORDS, PRECALL_NO_KW_BUILTIN_FAST, PRECALL_NO_KW_BUILTIN_O,               \
      PRECALL_NO_KW_METHOD_DESCRIPTOR_FAST, PRECALL_NO_KW_METHOD_DESCRIPTOR_NOARGS, PRECALL_NO_KW_METHOD_DESCRIPTOR_O, \
      PRECALL_NO_KW_STR_1, PRECALL_NO_KW_TUPLE_1, CALL_ADAPTIVE, BINARY_OP_ADAPTIVE, BINARY_SUBSCR_ADAPTIVE,           \
      COMPARE_OP_ADAPTIVE, STORE_SUBSCR_ADAPTIVE, LOAD_ATTR_ADAPTIVE, LOAD_METHOD, LOAD_METHOD_ADAPTIVE,               \
      STORE_ATTR_ADAPTIVE, UNPACK_SEQUENCE_ADAPTIVE
#elif PY_VERSION_HEX < 0x030D0000
#define OF_VERSION                                                                                               \
  FORMAT_VALUE, BINARY_SUBSCR, BINARY_SLICE, STORE_SLICE, CALL_INTRINSIC_1, CALL_INTRINSIC_2, INSTRUMENTED_CALL, \
      INSTRUMENTED_CALL_FUNCTION_EX, INSTRUMENTED_FOR_ITER, CALL_BUILTIN_CLASS, CALL_BUILTIN_FAST_WITH_KEYWORDS, \
      CALL_METHOD_DESCRIPTOR_FAST_WITH_KEYWORDS, CALL_NO_KW_BUILTIN_FAST, CALL_NO_KW_BUILTIN_O,                  \
      CALL_NO_KW_METHOD_DESCRIPTOR_FAST, CALL_NO_KW_METHOD_DESCRIPTOR_NOARGS, CALL_NO_KW_METHOD_DESCRIPTOR_O,    \
      CALL_NO_KW_STR_1, CALL_NO_KW_TUPLE_1
#else
#if PY_VERSION_HEX < 0x030E0000
#define OF_MINOR BINARY_SUBSCR
#elif PY_VERSION_HEX < 0x030F0000 /* an item of something is a BINARY_OP */
#define OF_MINOR CALL_KW_NON_PY
#else
#define OF_MINOR CALL_KW_NON_PY, CALL_EX_NON_PY_GENERAL
#endif
#define OF_VERSION                                                                                                   \
  FORMAT_SIMPLE, FORMAT_WITH_SPEC, BINARY_SLICE, STORE_SLICE, CALL_INTRINSIC_1, CALL_INTRINSIC_2, INSTRUMENTED_CALL, \
      INSTRUMENTED_CALL_FUNCTION_EX, INSTRUMENTED_FOR_ITER, CALL_KW, INSTRUMENTED_CALL_KW, CALL_BUILTIN_CLASS,       \
      CALL_BUILTIN_FAST, CALL_BUILTIN_FAST_WITH_KEYWORDS, CALL_BUILTIN_O, CALL_METHOD_DESCRIPTOR_FAST,               \
      CALL_METHOD_DESCRIPTOR_FAST_WITH_KEYWORDS, CALL_METHOD_DESCRIPTOR_NOARGS, CALL_METHOD_DESCRIPTOR_O,            \
      CALL_NON_PY_GENERAL, CALL_STR_1, CALL_TUPLE_1, OF_MINOR
#endif
static const uint8_t calls_out[] = {
    BINARY_OP,    COMPARE_OP, CONTAINS_OP,     FOR_ITER,    STORE_SUBSCR,     DELETE_SUBSCR, UNARY_NEGATIVE, UNARY_NOT,
    UNARY_INVERT, LOAD_ATTR,  STORE_ATTR,      IMPORT_NAME, LIST_EXTEND,      SET_UPDATE,    DICT_UPDATE,    DICT_MERGE,
    BUILD_STRING, GET_ITER,   UNPACK_SEQUENCE, CALL,        CALL_FUNCTION_EX, UNPACK_EX,     OF_VERSION};

static int text_facts(const void* header, size_t* length, size_t* width, size_t* data_offset) {
  PyASCIIObject text;
  memcpy(&text, header, sizeof text);
  if (!text.state.compact || text.length < 0) return 0;
  *length = (size_t)text.length;
  *width = text.state.kind;
  *data_offset = text.state.ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
  return *width == 1 || *width == 2 || *width == 4;
}

#if PY_VERSION_HEX < 0x030E0000
static void fill_from_headers(struct frame_layout* layout) {
  layout->threads_head = offsetof(PyInterpreterState, threads) + offsetof(struct pythreads, head);
  layout->thread_bytes = offsetof(PyThreadState, datastack_limit);
  layout->next_thread = offsetof(PyThreadState, next);
  layout->interpreter = offsetof(PyThreadState, interp);
  layout->native_id = offsetof(PyThreadState, native_thread_id);
  layout->frame_holder = offsetof(PyThreadState, HOLDER);
#if PY_VERSION_HEX < 0x030D0000
  layout->holder_is_pointer = 1;
  layout->frame_in_holder = offsetof(_PyCFrame, current_frame);
#endif
  layout->stack_chunk = offsetof(PyThreadState, datastack_chunk);
  layout->stack_top = offsetof(PyThreadState, datastack_top);
  layout->chunk_data = offsetof(_PyStackChunk, data);
  layout->frame_bytes = offsetof(struct _PyInterpreterFrame, localsplus);
#if PY_VERSION_HEX < 0x030D0000
  layout->frame_code = offsetof(struct _PyInterpreterFrame, f_code);
  layout->frame_instruction = offsetof(struct _PyInterpreterFrame, prev_instr);
#else
  layout->frame_code = offsetof(struct _PyInterpreterFrame, f_executable);
  layout->frame_instruction = offsetof(struct _PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX >= 0x030C0000
  layout->frame_owner = offsetof(struct _PyInterpreterFrame, owner);
  layout->first_owner_skipped = FRAME_OWNED_BY_CSTACK;
#endif
  layout->frame_previous = offsetof(struct _PyInterpreterFrame, previous);
  layout->code_bytes = offsetof(PyCodeObject, co_code_adaptive);
  layout->code_type = offsetof(PyObject, ob_type);
  layout->code_words = offsetof(PyVarObject, ob_size);
  layout->code_first_line = offsetof(PyCodeObject, co_firstlineno);
  layout->code_file = offsetof(PyCodeObject, co_filename);
  layout->code_name = offsetof(PyCodeObject, co_qualname);
  layout->code_lines = offsetof(PyCodeObject, co_linetable);
  layout->code_instructions = offsetof(PyCodeObject, co_code_adaptive);
  layout->bytes_length = offsetof(PyVarObject, ob_size);
  layout->bytes_data = offsetof(PyBytesObject, ob_sval);
  layout->gil_holder = offsetof(struct _gil_runtime_state, last_holder);
  layout->collecting = offsetof(PyInterpreterState, gc) + offsetof(struct _gc_runtime_state, collecting);
#if PY_VERSION_HEX < 0x030C0000
  layout->gil = (uintptr_t)&_PyRuntime.ceval.gil;
#else
  layout->gil = (uintptr_t)PyInterpreterState_Main()->ceval.gil;
#endif
}
#else
/* From the table that the interpreter has for tools like this one: it is of the interpreter that runs, whose structures
 * another patch release may lay out anew. What the table leaves out: a thread has the first, the top and the limit of
 * its stack in a row, and _PyStackChunk is public. */
static void fill_from_table(struct frame_layout* layout) {
  const _Py_DebugOffsets* table = &_PyRuntime.debug_offsets;
  layout->threads_head = table->interpreter_state.threads_head;
  layout->next_thread = table->thread_state.next;
  layout->interpreter = table->thread_state.interp;
  layout->native_id = table->thread_state.native_thread_id;
  layout->frame_holder = table->thread_state.current_frame;
  layout->stack_chunk = table->thread_state.datastack_chunk;
  layout->stack_top =
      layout->stack_chunk + offsetof(PyThreadState, datastack_top) - offsetof(PyThreadState, datastack_chunk);
  const size_t read[] = {layout->next_thread,  layout->interpreter, layout->native_id,
                         layout->frame_holder, layout->stack_chunk, layout->stack_top};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++)
    if (layout->thread_bytes < read[i] + sizeof(uintptr_t)) layout->thread_bytes = read[i] + sizeof(uintptr_t);
  layout->chunk_data = offsetof(_PyStackChunk, data);
  layout->frame_bytes = table->interpreter_frame.localsplus;
  layout->frame_code = table->interpreter_frame.executable;
  layout->code_tag_bits = Py_TAG_BITS;
  layout->frame_instruction = table->interpreter_frame.instr_ptr;
  layout->frame_owner = table->interpreter_frame.owner;
  layout->first_owner_skipped = FRAME_OWNED_BY_INTERPRETER;
  layout->frame_previous = table->interpreter_frame.previous;
  layout->code_bytes = layout->code_instructions = table->code_object.co_code_adaptive;
  layout->code_type = table->pyobject.ob_type;
  layout->code_words = offsetof(PyVarObject, ob_size);
  layout->code_first_line = table->code_object.firstlineno;
  layout->code_file = table->code_object.filename;
  layout->code_name = table->code_object.qualname;
  layout->code_lines = table->code_object.linetable;
  layout->bytes_length = table->bytes_object.ob_size;
  layout->bytes_data = table->bytes_object.ob_sval;
  layout->gil_holder = table->interpreter_state.gil_runtime_state_holder - table->interpreter_state.gil_runtime_state;
  layout->collecting = table->interpreter_state.gc + table->gc.collecting;
  memcpy(&layout->gil, (const char*)PyInterpreterState_Main() + table->interpreter_state.ceval_gil, sizeof layout->gil);
}
#endif

void* frame_layout_fill(struct frame_layout* layout) {
  memset(layout, 0, sizeof *layout);
#if PY_VERSION_HEX < 0x030E0000
  fill_from_headers(layout);
#else
  fill_from_table(layout);
#endif
  layout->code_type_object = (uintptr_t)&PyCode_Type;
  layout->text_facts = text_facts;
  layout->gil_bytes = sizeof(struct _gil_runtime_state);
  layout->text_bytes = sizeof(PyCompactUnicodeObject);
  for (size_t i = 0; i < sizeof calls_out; i++) layout->calls_out[calls_out[i]] = 1;
  return PyInterpreterState_Main();
}
