// Written by ./dev gen: do not edit.
// Enumerations of src/strobe/model/kinds.py, in their order.

export const GROUPS = ["data", "compute", "communication", "sync", "copy", "host", "other"] as const;
export type Group = (typeof GROUPS)[number];
export const PARTS = ["data_wait", "forward", "backward", "optimizer", "validation", "rest"] as const;
export type StepPart = (typeof PARTS)[number];
export const HOST_KINDS = ["communication", "gpu_wait", "gpu_call", "operators", "data_wait", "host"] as const;
export type HostKind = (typeof HOST_KINDS)[number];
export const LOCATION_KINDS = ["thread", "stream", "task"] as const;
export type LocationKind = (typeof LOCATION_KINDS)[number];
export const DETAILS = ["none", "part", "all"] as const;
export type Detail = (typeof DETAILS)[number];
