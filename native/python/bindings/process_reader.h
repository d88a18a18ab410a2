// process_reader.h - what other parts of the module need of a ProcessReader.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "kernels/reading/process_file.h"

// The file that a ProcessReader reads; it lives as long as somebody holds it. Throws nb::cast_error for another object.
std::shared_ptr<const strobe::ProcessFile> file_of(nanobind::handle reader);
