/* Prints the layout of the CPython that it is compiled for and loaded into, for tools/interpreter_layouts.py. */
#include "python/calls/frame_layout.c"
#define Py_BUILD_CORE 1
#include <internal/pycore_dict.h>
#include <internal/pycore_moduleobject.h>
#undef Py_BUILD_CORE
#include <stdio.h>

#define FRAMES(name) printf(".%s = %lld, ", #name, (long long)frames.name)
#define PUBLISHED(name)                                                                                                \
  printf("      {%zu, %llu, \"%s\"},\n", offsetof(_Py_DebugOffsets, name),                                              \
         (unsigned long long)_PyRuntime.debug_offsets.name, #name)
#define OTHER(name, value) printf("    .%s = %lld,\n", #name, (long long)(value))

__attribute__((visibility("default"))) void print_layout(void) {
  struct frame_layout frames;
  frame_layout_fill(&frames);
  printf("  {\n    .minor = %d,\n    .frames = {", PY_MINOR_VERSION);
  FRAMES(threads_head), FRAMES(thread_bytes), FRAMES(next_thread), FRAMES(interpreter), FRAMES(native_id);
  FRAMES(frame_holder), FRAMES(holder_is_pointer), FRAMES(frame_in_holder), FRAMES(stack_chunk), FRAMES(stack_top);
  FRAMES(chunk_data), FRAMES(frame_bytes), FRAMES(frame_code), FRAMES(frame_previous), FRAMES(frame_instruction), FRAMES(code_tag_bits);
  FRAMES(frame_owner), FRAMES(first_owner_skipped), FRAMES(code_bytes), FRAMES(code_type), FRAMES(code_words);
  FRAMES(code_first_line), FRAMES(code_file), FRAMES(code_name), FRAMES(code_lines), FRAMES(code_instructions);
  printf(".code_type_object = 0, ");
  FRAMES(bytes_length), FRAMES(bytes_data), FRAMES(text_bytes);
  printf(".text_facts = nullptr, .gil = 0, ");
  FRAMES(gil_bytes), FRAMES(gil_holder), FRAMES(collecting);
  printf(".callee = nullptr, .look = nullptr, .calls_out = {");
  for (int i = 0; i < 256; i++) printf("%d,", frames.calls_out[i]);
  printf("}},\n");
  OTHER(text_header_ascii, sizeof(PyASCIIObject));
  OTHER(text_header, sizeof(PyCompactUnicodeObject));
  OTHER(main_interpreter, offsetof(_PyRuntimeState, interpreters.main));
#if PY_VERSION_HEX < 0x030C0000
  OTHER(gil, offsetof(_PyRuntimeState, ceval.gil));
  OTHER(gil_is_pointer, 0);
#else
  OTHER(gil, offsetof(PyInterpreterState, ceval.gil));
  OTHER(gil_is_pointer, 1);
#endif
#if PY_VERSION_HEX < 0x030C0000
  OTHER(modules, offsetof(PyInterpreterState, modules));
#else
  OTHER(modules, offsetof(PyInterpreterState, imports.modules));
#endif
  OTHER(thread_ident, offsetof(PyThreadState, thread_id));
  OTHER(dict_keys, offsetof(PyDictObject, ma_keys));
  OTHER(dict_values, offsetof(PyDictObject, ma_values));
  OTHER(keys_index_bytes, offsetof(struct _dictkeysobject, dk_log2_index_bytes));
  OTHER(keys_kind, offsetof(struct _dictkeysobject, dk_kind));
  OTHER(keys_count, offsetof(struct _dictkeysobject, dk_nentries));
  OTHER(keys_data, offsetof(struct _dictkeysobject, dk_indices));
  OTHER(values_data, offsetof(struct _dictvalues, values));
  OTHER(module_dict, offsetof(PyModuleObject, md_dict));
  OTHER(type_flags, offsetof(PyTypeObject, tp_flags));
  OTHER(type_basic_bytes, offsetof(PyTypeObject, tp_basicsize));
  OTHER(type_keys, offsetof(PyHeapTypeObject, ht_cached_keys));
#if PY_VERSION_HEX < 0x030C0000
  OTHER(int_tag, offsetof(PyVarObject, ob_size));
  OTHER(int_digits, offsetof(PyLongObject, ob_digit));
#else
  OTHER(int_tag, offsetof(PyLongObject, long_value.lv_tag));
  OTHER(int_digits, offsetof(PyLongObject, long_value.ob_digit));
#endif
  printf("    .published = {\n");
#if PY_VERSION_HEX >= 0x030D0000
  PUBLISHED(runtime_state.interpreters_head);
  PUBLISHED(interpreter_state.threads_head), PUBLISHED(interpreter_state.gc);
  PUBLISHED(interpreter_state.imports_modules), PUBLISHED(interpreter_state.ceval_gil);
  PUBLISHED(interpreter_state.gil_runtime_state), PUBLISHED(interpreter_state.gil_runtime_state_holder);
  PUBLISHED(thread_state.next), PUBLISHED(thread_state.interp), PUBLISHED(thread_state.current_frame);
  PUBLISHED(thread_state.thread_id), PUBLISHED(thread_state.native_thread_id);
  PUBLISHED(thread_state.datastack_chunk);
  PUBLISHED(interpreter_frame.previous), PUBLISHED(interpreter_frame.executable);
  PUBLISHED(interpreter_frame.instr_ptr), PUBLISHED(interpreter_frame.localsplus), PUBLISHED(interpreter_frame.owner);
  PUBLISHED(code_object.filename), PUBLISHED(code_object.qualname), PUBLISHED(code_object.linetable);
  PUBLISHED(code_object.firstlineno), PUBLISHED(code_object.co_code_adaptive);
  PUBLISHED(pyobject.ob_type), PUBLISHED(type_object.tp_flags);
  PUBLISHED(dict_object.ma_keys), PUBLISHED(dict_object.ma_values);
  PUBLISHED(long_object.lv_tag), PUBLISHED(long_object.ob_digit);
  PUBLISHED(bytes_object.ob_size), PUBLISHED(bytes_object.ob_sval);
  PUBLISHED(unicode_object.state), PUBLISHED(unicode_object.length), PUBLISHED(unicode_object.asciiobject_size);
  PUBLISHED(gc.collecting);
#endif
  printf("    },\n  },\n");
  fflush(stdout);
}
