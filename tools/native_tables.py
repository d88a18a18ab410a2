"""What the core shares with the model, as constants of C++: the side tables, and words in the names of kernels."""

import textwrap

from strobe.model.kinds import COMMUNICATING
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES

PATH = "native/core/format/side_tables.generated.h"
NAMES_PATH = "native/structure/communicating_names.generated.h"


def names() -> str:
    """Return the header with the words by which kernels that communicate are known."""
    quoted = ([f'"{word}"' for word in words] for words in COMMUNICATING)
    entries = (f"    {{{', '.join(words)}}}," for words in quoted)
    most = max(map(len, COMMUNICATING))
    parts = [
        "// communicating_names.generated.h - words in the names of kernels that communicate, from model/kinds.py: all",
        "// words of an entry. Written by ./dev gen: do not edit.",
        "#pragma once",
        "// clang-format off",
        "#include <string_view>",
        "",
        "namespace strobe::structure {",
        "",
        f"inline constexpr std::string_view kCommunicating[][{most}] = {{",
        *entries,
        "};",
        "",
        "}  // namespace strobe::structure",
        "",
    ]
    return "\n".join(parts)


def text() -> str:
    """Return the header with the side tables."""
    kinds = {"int64": "integer", "uint32": "integer", "float64": "real", "string": "text"}
    parts = [
        "// side_tables.generated.h - the side tables of model/schema.py. Written by ./dev gen: do not edit.",
        "#pragma once",
        "// clang-format off",
        '#include "core/format/table_columns.h"',
        "",
        "namespace strobe::schema {",
        "",
    ]
    for number, name in enumerate((*SPAN_TABLES, *EVENT_TABLES)):
        columns = [each for each in TABLES[name] if each.name not in ("location", "row")]
        constants = [
            f'inline constexpr SchemaColumn {each.name}{{"{each.name}", CellType::{kinds[each.type]}, {place}}};'
            for place, each in enumerate(columns)
        ]
        names = ", ".join(each.name for each in columns)
        of_spans = str(name in SPAN_TABLES).lower()
        layout = f"inline TableLayout layout() {{ return {{table, {{{names}}}, {of_spans}}}; }}"
        parts += [
            f"namespace {name} {{",
            f'inline constexpr const char* table = "{name}";',
            f"inline constexpr uint32_t number = {number};",
            *constants,
            textwrap.fill(layout, 118, subsequent_indent="    "),
            f"}}  // namespace {name}",
        ]
    all_tables = ", ".join(f"{name}::layout()" for name in (*SPAN_TABLES, *EVENT_TABLES))
    parts += ["", "inline std::vector<TableLayout> side_tables() {", textwrap.fill(f"  return {{{all_tables}}};", 118)]
    return "\n".join([*parts, "}", "", "}  // namespace strobe::schema", ""])
