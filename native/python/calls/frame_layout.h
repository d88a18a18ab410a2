/* frame_layout.h - where this version of CPython keeps what the sampler reads, as offsets in bytes: the sampler copies
 * foreign memory and never follows a pointer itself. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What C code an instruction runs: the interpreter's own, or that of others; of code that is not known. */
enum { CALLEE_UNKNOWN, CALLEE_OWN, CALLEE_OTHER, CALLEE_OF_UNKNOWN };

struct frame_layout {
  /* PyInterpreterState, PyThreadState */
  size_t threads_head;
  size_t thread_bytes, next_thread, interpreter, native_id;
  size_t frame_holder;    /* of PyThreadState: the frame that runs, or what points to it */
  int holder_is_pointer;  /* 3.11 and 3.12: to a structure that holds the frame ... */
  size_t frame_in_holder; /* ... there */
  size_t stack_chunk, stack_top;
  size_t chunk_data;
  /* _PyInterpreterFrame */
  size_t frame_bytes, frame_code, frame_previous, frame_instruction;
  uintptr_t code_tag_bits; /* of frame_code: not a part of the address */
  size_t frame_owner;      /* 0: none is skipped */
  int first_owner_skipped; /* frames of this owner, and of those behind it, are only marks in the C stack */
  /* PyCodeObject */
  size_t code_bytes, code_type, code_words, code_first_line, code_file, code_name, code_lines, code_instructions;
  uintptr_t code_type_object;
  /* bytes, str */
  size_t bytes_length, bytes_data;
  size_t text_bytes; /* header to copy for text_facts */
  /* Of the header of a str that was copied: 0 where it is none that can be read. `width`: bytes a character. */
  int (*text_facts)(const void* header, size_t* length, size_t* width, size_t* data_offset);
  uintptr_t gil;                                /* who waits for the GIL sleeps on a word in here */
  size_t gil_bytes, gil_holder;                 /* in there: the thread state that has it, or had it last */
  size_t collecting;                            /* of PyInterpreterState: whether garbage is collected */
  int (*callee)(uintptr_t code, uint32_t unit); /* python/calls/callees.h; NULL: nothing is known */
  void (*look)(void); /* called at each look of the sampler, without the GIL; NULL: nothing is */
  /* By opcode: whether the instruction may call C code that takes long: calls, operators, iteration. */
  uint8_t calls_out[256];
};

/* Needs the GIL. */
void* frame_layout_fill(struct frame_layout* layout); /* the interpreter whose threads are sampled */

#ifdef __cplusplus
}
#endif
