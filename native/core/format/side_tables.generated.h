// side_tables.generated.h - the side tables of model/schema.py. Written by ./dev gen: do not edit.
#pragma once
// clang-format off
#include "core/format/table_columns.h"

namespace strobe::schema {

namespace kernel_spans {
inline constexpr const char* table = "kernel_spans";
inline constexpr uint32_t number = 0;
inline constexpr SchemaColumn correlation{"correlation", CellType::integer, 0};
inline constexpr SchemaColumn external_id{"external_id", CellType::integer, 1};
inline constexpr SchemaColumn device{"device", CellType::integer, 2};
inline constexpr SchemaColumn context{"context", CellType::integer, 3};
inline constexpr SchemaColumn stream{"stream", CellType::integer, 4};
inline constexpr SchemaColumn grid_x{"grid_x", CellType::integer, 5};
inline constexpr SchemaColumn grid_y{"grid_y", CellType::integer, 6};
inline constexpr SchemaColumn grid_z{"grid_z", CellType::integer, 7};
inline constexpr SchemaColumn block_x{"block_x", CellType::integer, 8};
inline constexpr SchemaColumn block_y{"block_y", CellType::integer, 9};
inline constexpr SchemaColumn block_z{"block_z", CellType::integer, 10};
inline constexpr SchemaColumn registers_per_thread{"registers_per_thread", CellType::integer, 11};
inline constexpr SchemaColumn shared_memory_bytes{"shared_memory_bytes", CellType::integer, 12};
inline constexpr SchemaColumn queued_ns{"queued_ns", CellType::integer, 13};
inline constexpr SchemaColumn blocks_per_sm{"blocks_per_sm", CellType::real, 14};
inline constexpr SchemaColumn warps_per_sm{"warps_per_sm", CellType::real, 15};
inline constexpr SchemaColumn occupancy_percent{"occupancy_percent", CellType::real, 16};
inline constexpr SchemaColumn graph{"graph", CellType::integer, 17};
inline constexpr SchemaColumn graph_node{"graph_node", CellType::integer, 18};
inline constexpr SchemaColumn captured_by{"captured_by", CellType::integer, 19};
inline constexpr SchemaColumn priority{"priority", CellType::integer, 20};
inline constexpr SchemaColumn static_shared_bytes{"static_shared_bytes", CellType::integer, 21};
inline constexpr SchemaColumn dynamic_shared_bytes{"dynamic_shared_bytes", CellType::integer, 22};
inline constexpr SchemaColumn executed_shared_bytes{"executed_shared_bytes", CellType::integer, 23};
inline constexpr SchemaColumn local_bytes_per_thread{"local_bytes_per_thread", CellType::integer, 24};
inline constexpr SchemaColumn local_bytes{"local_bytes", CellType::integer, 25};
inline constexpr SchemaColumn launch_type{"launch_type", CellType::text, 26};
inline constexpr SchemaColumn cache_config{"cache_config", CellType::text, 27};
inline constexpr SchemaColumn shared_limit{"shared_limit", CellType::text, 28};
inline constexpr SchemaColumn launch{"launch", CellType::integer, 29};
inline constexpr SchemaColumn green_context{"green_context", CellType::integer, 30};
inline constexpr SchemaColumn short_name{"short_name", CellType::text, 31};
inline constexpr SchemaColumn mangled_name{"mangled_name", CellType::text, 32};
inline TableLayout layout() { return {table, {correlation, external_id, device, context, stream, grid_x, grid_y,
    grid_z, block_x, block_y, block_z, registers_per_thread, shared_memory_bytes, queued_ns, blocks_per_sm,
    warps_per_sm, occupancy_percent, graph, graph_node, captured_by, priority, static_shared_bytes,
    dynamic_shared_bytes, executed_shared_bytes, local_bytes_per_thread, local_bytes, launch_type, cache_config,
    shared_limit, launch, green_context, short_name, mangled_name}, true}; }
}  // namespace kernel_spans
namespace copy_spans {
inline constexpr const char* table = "copy_spans";
inline constexpr uint32_t number = 1;
inline constexpr SchemaColumn correlation{"correlation", CellType::integer, 0};
inline constexpr SchemaColumn external_id{"external_id", CellType::integer, 1};
inline constexpr SchemaColumn device{"device", CellType::integer, 2};
inline constexpr SchemaColumn context{"context", CellType::integer, 3};
inline constexpr SchemaColumn stream{"stream", CellType::integer, 4};
inline constexpr SchemaColumn size_bytes{"size_bytes", CellType::integer, 5};
inline constexpr SchemaColumn bandwidth_gb_s{"bandwidth_gb_s", CellType::real, 6};
inline constexpr SchemaColumn graph{"graph", CellType::integer, 7};
inline constexpr SchemaColumn graph_node{"graph_node", CellType::integer, 8};
inline constexpr SchemaColumn captured_by{"captured_by", CellType::integer, 9};
inline constexpr SchemaColumn copy_kind{"copy_kind", CellType::text, 10};
inline constexpr SchemaColumn source_kind{"source_kind", CellType::text, 11};
inline constexpr SchemaColumn destination_kind{"destination_kind", CellType::text, 12};
inline constexpr SchemaColumn source_device{"source_device", CellType::integer, 13};
inline constexpr SchemaColumn source_context{"source_context", CellType::integer, 14};
inline constexpr SchemaColumn destination_device{"destination_device", CellType::integer, 15};
inline constexpr SchemaColumn destination_context{"destination_context", CellType::integer, 16};
inline constexpr SchemaColumn set_value{"set_value", CellType::integer, 17};
inline constexpr SchemaColumn migration_cause{"migration_cause", CellType::text, 18};
inline constexpr SchemaColumn address{"address", CellType::integer, 19};
inline TableLayout layout() { return {table, {correlation, external_id, device, context, stream, size_bytes,
    bandwidth_gb_s, graph, graph_node, captured_by, copy_kind, source_kind, destination_kind, source_device,
    source_context, destination_device, destination_context, set_value, migration_cause, address}, true}; }
}  // namespace copy_spans
namespace call_spans {
inline constexpr const char* table = "call_spans";
inline constexpr uint32_t number = 2;
inline constexpr SchemaColumn correlation{"correlation", CellType::integer, 0};
inline constexpr SchemaColumn external_id{"external_id", CellType::integer, 1};
inline constexpr SchemaColumn callback_id{"callback_id", CellType::integer, 2};
inline constexpr SchemaColumn return_value{"return_value", CellType::integer, 3};
inline constexpr SchemaColumn nesting_level{"nesting_level", CellType::integer, 4};
inline constexpr SchemaColumn call_stack{"call_stack", CellType::text, 5};
inline TableLayout layout() { return {table, {correlation, external_id, callback_id, return_value, nesting_level,
    call_stack}, true}; }
}  // namespace call_spans
namespace operator_spans {
inline constexpr const char* table = "operator_spans";
inline constexpr uint32_t number = 3;
inline constexpr SchemaColumn external_id{"external_id", CellType::integer, 0};
inline constexpr SchemaColumn record_function_id{"record_function_id", CellType::integer, 1};
inline constexpr SchemaColumn event_index{"event_index", CellType::integer, 2};
inline constexpr SchemaColumn sequence_number{"sequence_number", CellType::integer, 3};
inline constexpr SchemaColumn forward_thread{"forward_thread", CellType::integer, 4};
inline constexpr SchemaColumn shapes{"shapes", CellType::text, 5};
inline constexpr SchemaColumn types{"types", CellType::text, 6};
inline constexpr SchemaColumn strides{"strides", CellType::text, 7};
inline constexpr SchemaColumn concrete_inputs{"concrete_inputs", CellType::text, 8};
inline constexpr SchemaColumn module_hierarchy{"module_hierarchy", CellType::text, 9};
inline constexpr SchemaColumn call_stack{"call_stack", CellType::text, 10};
inline TableLayout layout() { return {table, {external_id, record_function_id, event_index, sequence_number,
    forward_thread, shapes, types, strides, concrete_inputs, module_hierarchy, call_stack}, true}; }
}  // namespace operator_spans
namespace sync_spans {
inline constexpr const char* table = "sync_spans";
inline constexpr uint32_t number = 4;
inline constexpr SchemaColumn correlation{"correlation", CellType::integer, 0};
inline constexpr SchemaColumn external_id{"external_id", CellType::integer, 1};
inline constexpr SchemaColumn device{"device", CellType::integer, 2};
inline constexpr SchemaColumn context{"context", CellType::integer, 3};
inline constexpr SchemaColumn stream{"stream", CellType::integer, 4};
inline constexpr SchemaColumn sync_kind{"sync_kind", CellType::text, 5};
inline constexpr SchemaColumn wait_on_stream{"wait_on_stream", CellType::integer, 6};
inline constexpr SchemaColumn wait_on_correlation{"wait_on_correlation", CellType::integer, 7};
inline constexpr SchemaColumn wait_on_event{"wait_on_event", CellType::integer, 8};
inline TableLayout layout() { return {table, {correlation, external_id, device, context, stream, sync_kind,
    wait_on_stream, wait_on_correlation, wait_on_event}, true}; }
}  // namespace sync_spans
namespace collective_spans {
inline constexpr const char* table = "collective_spans";
inline constexpr uint32_t number = 5;
inline constexpr SchemaColumn collective{"collective", CellType::text, 0};
inline constexpr SchemaColumn dtype{"dtype", CellType::text, 1};
inline constexpr SchemaColumn in_elements{"in_elements", CellType::integer, 2};
inline constexpr SchemaColumn out_elements{"out_elements", CellType::integer, 3};
inline constexpr SchemaColumn group_size{"group_size", CellType::integer, 4};
inline constexpr SchemaColumn group{"group", CellType::text, 5};
inline constexpr SchemaColumn group_description{"group_description", CellType::text, 6};
inline constexpr SchemaColumn group_ranks{"group_ranks", CellType::text, 7};
inline constexpr SchemaColumn in_split{"in_split", CellType::text, 8};
inline constexpr SchemaColumn out_split{"out_split", CellType::text, 9};
inline constexpr SchemaColumn rank{"rank", CellType::integer, 10};
inline constexpr SchemaColumn first_rank{"first_rank", CellType::integer, 11};
inline constexpr SchemaColumn rank_stride{"rank_stride", CellType::integer, 12};
inline constexpr SchemaColumn sequence{"sequence", CellType::integer, 13};
inline constexpr SchemaColumn communicator{"communicator", CellType::text, 14};
inline constexpr SchemaColumn source_rank{"source_rank", CellType::integer, 15};
inline constexpr SchemaColumn destination_rank{"destination_rank", CellType::integer, 16};
inline constexpr SchemaColumn root{"root", CellType::integer, 17};
inline constexpr SchemaColumn sent_bytes{"sent_bytes", CellType::integer, 18};
inline constexpr SchemaColumn received_bytes{"received_bytes", CellType::integer, 19};
inline constexpr SchemaColumn request{"request", CellType::integer, 20};
inline constexpr SchemaColumn pending_ns{"pending_ns", CellType::integer, 21};
inline constexpr SchemaColumn bucket{"bucket", CellType::integer, 22};
inline constexpr SchemaColumn source_ranks{"source_ranks", CellType::text, 23};
inline TableLayout layout() { return {table, {collective, dtype, in_elements, out_elements, group_size, group,
    group_description, group_ranks, in_split, out_split, rank, first_rank, rank_stride, sequence, communicator,
    source_rank, destination_rank, root, sent_bytes, received_bytes, request, pending_ns, bucket, source_ranks},
    true}; }
}  // namespace collective_spans
namespace range_spans {
inline constexpr const char* table = "range_spans";
inline constexpr uint32_t number = 6;
inline constexpr SchemaColumn category{"category", CellType::text, 0};
inline constexpr SchemaColumn color{"color", CellType::integer, 1};
inline constexpr SchemaColumn payload{"payload", CellType::text, 2};
inline constexpr SchemaColumn payload_type{"payload_type", CellType::text, 3};
inline constexpr SchemaColumn json{"json", CellType::text, 4};
inline constexpr SchemaColumn range_id{"range_id", CellType::integer, 5};
inline constexpr SchemaColumn end_thread_id{"end_thread_id", CellType::integer, 6};
inline TableLayout layout() { return {table, {category, color, payload, payload_type, json, range_id, end_thread_id},
    true}; }
}  // namespace range_spans
namespace python_spans {
inline constexpr const char* table = "python_spans";
inline constexpr uint32_t number = 7;
inline constexpr SchemaColumn python_id{"python_id", CellType::integer, 0};
inline constexpr SchemaColumn python_parent_id{"python_parent_id", CellType::integer, 1};
inline constexpr SchemaColumn python_module_id{"python_module_id", CellType::integer, 2};
inline TableLayout layout() { return {table, {python_id, python_parent_id, python_module_id}, true}; }
}  // namespace python_spans
namespace io_spans {
inline constexpr const char* table = "io_spans";
inline constexpr uint32_t number = 8;
inline constexpr SchemaColumn operation{"operation", CellType::text, 0};
inline constexpr SchemaColumn file{"file", CellType::text, 1};
inline constexpr SchemaColumn descriptor{"descriptor", CellType::integer, 2};
inline constexpr SchemaColumn size_bytes{"size_bytes", CellType::integer, 3};
inline constexpr SchemaColumn requested_bytes{"requested_bytes", CellType::integer, 4};
inline constexpr SchemaColumn offset_bytes{"offset_bytes", CellType::integer, 5};
inline TableLayout layout() { return {table, {operation, file, descriptor, size_bytes, requested_bytes, offset_bytes},
    true}; }
}  // namespace io_spans
namespace arguments {
inline constexpr const char* table = "arguments";
inline constexpr uint32_t number = 9;
inline constexpr SchemaColumn key{"key", CellType::text, 0};
inline constexpr SchemaColumn value{"value", CellType::text, 1};
inline TableLayout layout() { return {table, {key, value}, true}; }
}  // namespace arguments
namespace allocations {
inline constexpr const char* table = "allocations";
inline constexpr uint32_t number = 10;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn address{"address", CellType::integer, 1};
inline constexpr SchemaColumn size_bytes{"size_bytes", CellType::integer, 2};
inline constexpr SchemaColumn total_allocated_bytes{"total_allocated_bytes", CellType::integer, 3};
inline constexpr SchemaColumn total_reserved_bytes{"total_reserved_bytes", CellType::integer, 4};
inline constexpr SchemaColumn device_type{"device_type", CellType::integer, 5};
inline constexpr SchemaColumn device{"device", CellType::integer, 6};
inline constexpr SchemaColumn event_index{"event_index", CellType::integer, 7};
inline constexpr SchemaColumn context{"context", CellType::integer, 8};
inline constexpr SchemaColumn correlation{"correlation", CellType::integer, 9};
inline constexpr SchemaColumn memory_kind{"memory_kind", CellType::text, 10};
inline constexpr SchemaColumn program_counter{"program_counter", CellType::integer, 11};
inline constexpr SchemaColumn name{"name", CellType::text, 12};
inline constexpr SchemaColumn total_active_bytes{"total_active_bytes", CellType::integer, 13};
inline constexpr SchemaColumn largest_free_bytes{"largest_free_bytes", CellType::integer, 14};
inline TableLayout layout() { return {table, {time_ns, address, size_bytes, total_allocated_bytes,
    total_reserved_bytes, device_type, device, event_index, context, correlation, memory_kind, program_counter, name,
    total_active_bytes, largest_free_bytes}, false}; }
}  // namespace allocations
namespace memory_blocks {
inline constexpr const char* table = "memory_blocks";
inline constexpr uint32_t number = 11;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn duration_ns{"duration_ns", CellType::integer, 1};
inline constexpr SchemaColumn event_index{"event_index", CellType::integer, 2};
inline constexpr SchemaColumn freed_index{"freed_index", CellType::integer, 3};
inline constexpr SchemaColumn address{"address", CellType::integer, 4};
inline constexpr SchemaColumn size_bytes{"size_bytes", CellType::integer, 5};
inline constexpr SchemaColumn device_type{"device_type", CellType::integer, 6};
inline constexpr SchemaColumn device{"device", CellType::integer, 7};
inline constexpr SchemaColumn call_path{"call_path", CellType::integer, 8};
inline constexpr SchemaColumn category{"category", CellType::text, 9};
inline TableLayout layout() { return {table, {time_ns, duration_ns, event_index, freed_index, address, size_bytes,
    device_type, device, call_path, category}, false}; }
}  // namespace memory_blocks
namespace samples {
inline constexpr const char* table = "samples";
inline constexpr uint32_t number = 12;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn call_stack{"call_stack", CellType::text, 1};
inline constexpr SchemaColumn cpu{"cpu", CellType::integer, 2};
inline constexpr SchemaColumn state{"state", CellType::text, 3};
inline constexpr SchemaColumn weight{"weight", CellType::integer, 4};
inline constexpr SchemaColumn line{"line", CellType::integer, 5};
inline constexpr SchemaColumn period_ns{"period_ns", CellType::integer, 6};
inline constexpr SchemaColumn cpu_ns{"cpu_ns", CellType::integer, 7};
inline TableLayout layout() { return {table, {time_ns, call_stack, cpu, state, weight, line, period_ns, cpu_ns},
    false}; }
}  // namespace samples
namespace sample_totals {
inline constexpr const char* table = "sample_totals";
inline constexpr uint32_t number = 13;
inline constexpr SchemaColumn call_stack{"call_stack", CellType::text, 0};
inline constexpr SchemaColumn state{"state", CellType::text, 1};
inline constexpr SchemaColumn samples{"samples", CellType::integer, 2};
inline constexpr SchemaColumn total_ns{"total_ns", CellType::integer, 3};
inline constexpr SchemaColumn cpu_ns{"cpu_ns", CellType::integer, 4};
inline TableLayout layout() { return {table, {call_stack, state, samples, total_ns, cpu_ns}, false}; }
}  // namespace sample_totals
namespace messages {
inline constexpr const char* table = "messages";
inline constexpr uint32_t number = 14;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn direction{"direction", CellType::text, 1};
inline constexpr SchemaColumn peer_rank{"peer_rank", CellType::integer, 2};
inline constexpr SchemaColumn peer{"peer", CellType::text, 3};
inline constexpr SchemaColumn communicator_rank{"communicator_rank", CellType::integer, 4};
inline constexpr SchemaColumn tag{"tag", CellType::integer, 5};
inline constexpr SchemaColumn communicator{"communicator", CellType::text, 6};
inline constexpr SchemaColumn size_bytes{"size_bytes", CellType::integer, 7};
inline constexpr SchemaColumn request{"request", CellType::integer, 8};
inline constexpr SchemaColumn pending_ns{"pending_ns", CellType::integer, 9};
inline constexpr SchemaColumn in_call_ns{"in_call_ns", CellType::integer, 10};
inline constexpr SchemaColumn call_path{"call_path", CellType::integer, 11};
inline TableLayout layout() { return {table, {time_ns, direction, peer_rank, peer, communicator_rank, tag,
    communicator, size_bytes, request, pending_ns, in_call_ns, call_path}, false}; }
}  // namespace messages
namespace folded_collectives {
inline constexpr const char* table = "folded_collectives";
inline constexpr uint32_t number = 15;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn duration_ns{"duration_ns", CellType::integer, 1};
inline constexpr SchemaColumn call_path{"call_path", CellType::integer, 2};
inline constexpr SchemaColumn collective{"collective", CellType::text, 3};
inline constexpr SchemaColumn dtype{"dtype", CellType::text, 4};
inline constexpr SchemaColumn in_elements{"in_elements", CellType::integer, 5};
inline constexpr SchemaColumn out_elements{"out_elements", CellType::integer, 6};
inline constexpr SchemaColumn group_size{"group_size", CellType::integer, 7};
inline constexpr SchemaColumn group{"group", CellType::text, 8};
inline constexpr SchemaColumn group_description{"group_description", CellType::text, 9};
inline constexpr SchemaColumn group_ranks{"group_ranks", CellType::text, 10};
inline constexpr SchemaColumn in_split{"in_split", CellType::text, 11};
inline constexpr SchemaColumn out_split{"out_split", CellType::text, 12};
inline constexpr SchemaColumn rank{"rank", CellType::integer, 13};
inline constexpr SchemaColumn first_rank{"first_rank", CellType::integer, 14};
inline constexpr SchemaColumn rank_stride{"rank_stride", CellType::integer, 15};
inline constexpr SchemaColumn sequence{"sequence", CellType::integer, 16};
inline constexpr SchemaColumn communicator{"communicator", CellType::text, 17};
inline constexpr SchemaColumn source_rank{"source_rank", CellType::integer, 18};
inline constexpr SchemaColumn destination_rank{"destination_rank", CellType::integer, 19};
inline constexpr SchemaColumn root{"root", CellType::integer, 20};
inline constexpr SchemaColumn sent_bytes{"sent_bytes", CellType::integer, 21};
inline constexpr SchemaColumn received_bytes{"received_bytes", CellType::integer, 22};
inline constexpr SchemaColumn request{"request", CellType::integer, 23};
inline constexpr SchemaColumn pending_ns{"pending_ns", CellType::integer, 24};
inline constexpr SchemaColumn bucket{"bucket", CellType::integer, 25};
inline constexpr SchemaColumn source_ranks{"source_ranks", CellType::text, 26};
inline TableLayout layout() { return {table, {time_ns, duration_ns, call_path, collective, dtype, in_elements,
    out_elements, group_size, group, group_description, group_ranks, in_split, out_split, rank, first_rank,
    rank_stride, sequence, communicator, source_rank, destination_rank, root, sent_bytes, received_bytes, request,
    pending_ns, bucket, source_ranks}, false}; }
}  // namespace folded_collectives
namespace message_totals {
inline constexpr const char* table = "message_totals";
inline constexpr uint32_t number = 16;
inline constexpr SchemaColumn function{"function", CellType::text, 0};
inline constexpr SchemaColumn communicator{"communicator", CellType::text, 1};
inline constexpr SchemaColumn peer_rank{"peer_rank", CellType::integer, 2};
inline constexpr SchemaColumn size_bytes{"size_bytes", CellType::integer, 3};
inline constexpr SchemaColumn calls{"calls", CellType::integer, 4};
inline constexpr SchemaColumn sent_bytes{"sent_bytes", CellType::integer, 5};
inline constexpr SchemaColumn received_bytes{"received_bytes", CellType::integer, 6};
inline constexpr SchemaColumn total_ns{"total_ns", CellType::integer, 7};
inline constexpr SchemaColumn max_ns{"max_ns", CellType::integer, 8};
inline TableLayout layout() { return {table, {function, communicator, peer_rank, size_bytes, calls, sent_bytes,
    received_bytes, total_ns, max_ns}, false}; }
}  // namespace message_totals
namespace marks {
inline constexpr const char* table = "marks";
inline constexpr uint32_t number = 17;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn name{"name", CellType::text, 1};
inline constexpr SchemaColumn category{"category", CellType::text, 2};
inline constexpr SchemaColumn arguments{"arguments", CellType::text, 3};
inline TableLayout layout() { return {table, {time_ns, name, category, arguments}, false}; }
}  // namespace marks
namespace flows {
inline constexpr const char* table = "flows";
inline constexpr uint32_t number = 18;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn flow{"flow", CellType::integer, 1};
inline constexpr SchemaColumn flow_name{"flow_name", CellType::text, 2};
inline constexpr SchemaColumn phase{"phase", CellType::text, 3};
inline constexpr SchemaColumn name{"name", CellType::text, 4};
inline constexpr SchemaColumn category{"category", CellType::text, 5};
inline TableLayout layout() { return {table, {time_ns, flow, flow_name, phase, name, category}, false}; }
}  // namespace flows
namespace lines {
inline constexpr const char* table = "lines";
inline constexpr uint32_t number = 19;
inline constexpr SchemaColumn file{"file", CellType::text, 0};
inline constexpr SchemaColumn line{"line", CellType::integer, 1};
inline constexpr SchemaColumn function{"function", CellType::text, 2};
inline constexpr SchemaColumn function_line{"function_line", CellType::integer, 3};
inline constexpr SchemaColumn hits{"hits", CellType::integer, 4};
inline constexpr SchemaColumn total_ns{"total_ns", CellType::integer, 5};
inline constexpr SchemaColumn gpu_ns{"gpu_ns", CellType::integer, 6};
inline constexpr SchemaColumn kernels{"kernels", CellType::integer, 7};
inline TableLayout layout() { return {table, {file, line, function, function_line, hits, total_ns, gpu_ns, kernels},
    false}; }
}  // namespace lines
namespace call_edges {
inline constexpr const char* table = "call_edges";
inline constexpr uint32_t number = 20;
inline constexpr SchemaColumn caller{"caller", CellType::text, 0};
inline constexpr SchemaColumn caller_file{"caller_file", CellType::text, 1};
inline constexpr SchemaColumn caller_line{"caller_line", CellType::integer, 2};
inline constexpr SchemaColumn callee{"callee", CellType::text, 3};
inline constexpr SchemaColumn callee_file{"callee_file", CellType::text, 4};
inline constexpr SchemaColumn callee_line{"callee_line", CellType::integer, 5};
inline constexpr SchemaColumn calls{"calls", CellType::integer, 6};
inline constexpr SchemaColumn primitive_calls{"primitive_calls", CellType::integer, 7};
inline constexpr SchemaColumn total_ns{"total_ns", CellType::integer, 8};
inline constexpr SchemaColumn self_ns{"self_ns", CellType::integer, 9};
inline TableLayout layout() { return {table, {caller, caller_file, caller_line, callee, callee_file, callee_line,
    calls, primitive_calls, total_ns, self_ns}, false}; }
}  // namespace call_edges
namespace path_metrics {
inline constexpr const char* table = "path_metrics";
inline constexpr uint32_t number = 21;
inline constexpr SchemaColumn call_path{"call_path", CellType::integer, 0};
inline constexpr SchemaColumn metric{"metric", CellType::text, 1};
inline constexpr SchemaColumn unit{"unit", CellType::text, 2};
inline constexpr SchemaColumn self_value{"self_value", CellType::real, 3};
inline constexpr SchemaColumn total_value{"total_value", CellType::real, 4};
inline TableLayout layout() { return {table, {call_path, metric, unit, self_value, total_value}, false}; }
}  // namespace path_metrics
namespace io_totals {
inline constexpr const char* table = "io_totals";
inline constexpr uint32_t number = 22;
inline constexpr SchemaColumn function{"function", CellType::text, 0};
inline constexpr SchemaColumn file{"file", CellType::text, 1};
inline constexpr SchemaColumn calls{"calls", CellType::integer, 2};
inline constexpr SchemaColumn read_bytes{"read_bytes", CellType::integer, 3};
inline constexpr SchemaColumn written_bytes{"written_bytes", CellType::integer, 4};
inline constexpr SchemaColumn total_ns{"total_ns", CellType::integer, 5};
inline constexpr SchemaColumn max_ns{"max_ns", CellType::integer, 6};
inline TableLayout layout() { return {table, {function, file, calls, read_bytes, written_bytes, total_ns, max_ns},
    false}; }
}  // namespace io_totals
namespace thread_waits {
inline constexpr const char* table = "thread_waits";
inline constexpr uint32_t number = 23;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn state{"state", CellType::text, 1};
inline constexpr SchemaColumn call_stack{"call_stack", CellType::text, 2};
inline constexpr SchemaColumn cause{"cause", CellType::integer, 3};
inline constexpr SchemaColumn waits{"waits", CellType::integer, 4};
inline constexpr SchemaColumn wait_ns{"wait_ns", CellType::integer, 5};
inline constexpr SchemaColumn max_ns{"max_ns", CellType::integer, 6};
inline TableLayout layout() { return {table, {time_ns, state, call_stack, cause, waits, wait_ns, max_ns}, false}; }
}  // namespace thread_waits
namespace compilations {
inline constexpr const char* table = "compilations";
inline constexpr uint32_t number = 24;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn event{"event", CellType::text, 1};
inline constexpr SchemaColumn compile_id{"compile_id", CellType::text, 2};
inline constexpr SchemaColumn function{"function", CellType::text, 3};
inline constexpr SchemaColumn file{"file", CellType::text, 4};
inline constexpr SchemaColumn line{"line", CellType::integer, 5};
inline constexpr SchemaColumn reason{"reason", CellType::text, 6};
inline constexpr SchemaColumn duration_ns{"duration_ns", CellType::integer, 7};
inline TableLayout layout() { return {table, {time_ns, event, compile_id, function, file, line, reason, duration_ns},
    false}; }
}  // namespace compilations
namespace compiled_kernels {
inline constexpr const char* table = "compiled_kernels";
inline constexpr uint32_t number = 25;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn kernel{"kernel", CellType::text, 1};
inline constexpr SchemaColumn file{"file", CellType::text, 2};
inline constexpr SchemaColumn line{"line", CellType::integer, 3};
inline constexpr SchemaColumn operators{"operators", CellType::text, 4};
inline constexpr SchemaColumn source_lines{"source_lines", CellType::text, 5};
inline constexpr SchemaColumn shapes{"shapes", CellType::text, 6};
inline constexpr SchemaColumn reason{"reason", CellType::text, 7};
inline TableLayout layout() { return {table, {time_ns, kernel, file, line, operators, source_lines, shapes, reason},
    false}; }
}  // namespace compiled_kernels
namespace requests {
inline constexpr const char* table = "requests";
inline constexpr uint32_t number = 26;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn route{"route", CellType::text, 1};
inline constexpr SchemaColumn request{"request", CellType::integer, 2};
inline constexpr SchemaColumn status{"status", CellType::integer, 3};
inline constexpr SchemaColumn server{"server", CellType::text, 4};
inline constexpr SchemaColumn latency_ns{"latency_ns", CellType::integer, 5};
inline constexpr SchemaColumn start_delay_ns{"start_delay_ns", CellType::integer, 6};
inline constexpr SchemaColumn running_ns{"running_ns", CellType::integer, 7};
inline constexpr SchemaColumn collecting_ns{"collecting_ns", CellType::integer, 8};
inline TableLayout layout() { return {table, {time_ns, route, request, status, server, latency_ns, start_delay_ns,
    running_ns, collecting_ns}, false}; }
}  // namespace requests
namespace request_parts {
inline constexpr const char* table = "request_parts";
inline constexpr uint32_t number = 27;
inline constexpr SchemaColumn time_ns{"time_ns", CellType::integer, 0};
inline constexpr SchemaColumn kind{"kind", CellType::text, 1};
inline constexpr SchemaColumn code{"code", CellType::text, 2};
inline constexpr SchemaColumn cause{"cause", CellType::text, 3};
inline constexpr SchemaColumn request{"request", CellType::integer, 4};
inline constexpr SchemaColumn thread_id{"thread_id", CellType::integer, 5};
inline constexpr SchemaColumn duration_ns{"duration_ns", CellType::integer, 6};
inline TableLayout layout() { return {table, {time_ns, kind, code, cause, request, thread_id, duration_ns}, false}; }
}  // namespace request_parts

inline std::vector<TableLayout> side_tables() {
  return {kernel_spans::layout(), copy_spans::layout(), call_spans::layout(), operator_spans::layout(),
sync_spans::layout(), collective_spans::layout(), range_spans::layout(), python_spans::layout(), io_spans::layout(),
arguments::layout(), allocations::layout(), memory_blocks::layout(), samples::layout(), sample_totals::layout(),
messages::layout(), folded_collectives::layout(), message_totals::layout(), marks::layout(), flows::layout(),
lines::layout(), call_edges::layout(), path_metrics::layout(), io_totals::layout(), thread_waits::layout(),
compilations::layout(), compiled_kernels::layout(), requests::layout(), request_parts::layout()};
}

}  // namespace strobe::schema
