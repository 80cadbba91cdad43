"""The parts left out of an outline, per language, as tree-sitter queries.

`@body` and multi-line `@long` literals become `...`; of a long `@type` the head stays. `@drop` is
removed without a mark. `@import` is counted, and so is a `@call` that begins with `require`
(checked in code, because a query predicate per call is slower). `@def` is shown even inside a body.
"""

from __future__ import annotations

_SCRIPT = """
    [(function_declaration body: (_) @body) (generator_function_declaration body: (_) @body)
     (method_definition body: (_) @body) (function_expression body: (_) @body)
     (arrow_function body: (_) @body)]
    [(function_declaration) (generator_function_declaration) (class_declaration)
     (lexical_declaration (variable_declarator value: [(arrow_function) (function_expression)]))
     (variable_declaration (variable_declarator value: [(arrow_function) (function_expression)]))
     (method_definition) (pair value: [(arrow_function) (function_expression)])] @def
    (comment) @drop
    [(array) (object) (template_string)] @long
    (import_statement) @import
"""

_TYPED = """
    [(interface_body) (object_type) (enum_body)] @type
"""

_C = """
    (function_definition body: (compound_statement) @body)
    (comment) @drop
    (initializer_list) @long
    (enumerator_list) @type
    (preproc_include) @import
"""

PACKAGES = {
    "csharp": "c_sharp",
    "php": "php:language_php",
    "tsx": "typescript:language_tsx",
    "typescript": "typescript:language_typescript",
}
"""Where a grammar is, if not `tree_sitter_<language>.language`."""

QUERIES: dict[str, str] = {
    "python": """
        (function_definition body: (block) @body)
        [(function_definition) (class_definition)] @def
        (comment) @drop
        (module (expression_statement (string) @drop))
        (class_definition body: (block . (expression_statement (string) @drop)))
        [(list) (dictionary) (set) (tuple) (string)] @long
        [(import_statement) (import_from_statement) (future_import_statement)] @import
    """,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT + _TYPED,
    "tsx": _SCRIPT + _TYPED,
    "go": """
        [(function_declaration body: (_) @body) (method_declaration body: (_) @body)
         (func_literal body: (_) @body)]
        [(short_var_declaration right: (expression_list (func_literal))) (var_spec value:
         (expression_list (func_literal)))] @def
        (comment) @drop
        [(literal_value) (raw_string_literal)] @long
        [(field_declaration_list) (interface_type)] @type
        (import_declaration) @import
    """,
    "java": """
        [(method_declaration body: (_) @body) (constructor_declaration body: (_) @body)
         (compact_constructor_declaration body: (_) @body) (static_initializer (block) @body)
         (lambda_expression body: (block) @body)]
        [(method_declaration) (class_declaration)
         (local_variable_declaration (variable_declarator value: (lambda_expression)))] @def
        [(line_comment) (block_comment)] @drop
        [(array_initializer) (string_literal)] @long
        (import_declaration) @import
    """,
    "rust": """
        [(function_item body: (_) @body) (closure_expression body: (block) @body)
         (macro_rule right: (_) @body)]
        [(function_item) (let_declaration value: (closure_expression))] @def
        [(line_comment) (block_comment)] @drop
        [(array_expression) (raw_string_literal)] @long
        [(field_declaration_list) (enum_variant_list)] @type
        (use_declaration) @import
    """,
    "c": _C + "(field_declaration_list) @type",
    "cpp": _C
    + """
        (lambda_expression body: (_) @body)
        (declaration (init_declarator value: (lambda_expression))) @def
        (struct_specifier body: (field_declaration_list) @type)
        (using_declaration) @import
    """,
    "csharp": """
        [(method_declaration body: (_) @body) (constructor_declaration body: (_) @body)
         (destructor_declaration body: (_) @body) (accessor_declaration body: (block) @body)
         (operator_declaration body: (_) @body) (local_function_statement body: (_) @body)
         (lambda_expression body: (block) @body)]
        [(local_function_statement) (local_declaration_statement (variable_declaration
          (variable_declarator (lambda_expression))))] @def
        (comment) @drop
        (initializer_expression) @long
        (enum_member_declaration_list) @type
        (using_directive) @import
    """,
    "ruby": """
        [(method body: (_) @body) (singleton_method body: (_) @body)
         (lambda body: (_) @body)]
        [(method) (singleton_method)] @def
        (comment) @drop
        [(array) (hash) (heredoc_body)] @long
        (program (call !receiver method: (identifier)) @call)
        (program (call receiver: (_) method: (identifier) @_name) @import
         (#match? @_name "^require"))
    """,
    "php": """
        [(function_definition body: (_) @body) (method_declaration body: (_) @body)
         (anonymous_function body: (_) @body)]
        [(function_definition)
         (expression_statement (assignment_expression right: [(anonymous_function)
          (arrow_function)]))] @def
        (comment) @drop
        [(array_creation_expression) (heredoc)] @long
        (enum_declaration_list) @type
        (namespace_use_declaration) @import
    """,
    "kotlin": """
        (function_body) @body
        (anonymous_initializer (block) @body)
        (secondary_constructor (block) @body)
        [(function_declaration)
         (property_declaration (lambda_literal))] @def
        (lambda_literal) @body
        [(line_comment) (block_comment)] @drop
        (collection_literal) @long
        (import) @import
    """,
    "swift": """
        [(function_body) (computed_property)] @body
        (lambda_literal (statements) @body)
        [(function_declaration) (property_declaration value: (lambda_literal))] @def
        [(comment) (multiline_comment)] @drop
        [(array_literal) (dictionary_literal)] @long
        (protocol_body) @type
        (import_declaration) @import
    """,
}

ENDINGS: dict[str, str] = {
    "py": "python", "pyi": "python", "pyw": "python",
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript",
    "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx",
    "go": "go", "java": "java", "rs": "rust",
    "c": "c", "h": "cpp", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hh": "cpp", "hpp": "cpp",
    "cs": "csharp", "rb": "ruby", "rake": "ruby", "php": "php",
    "kt": "kotlin", "kts": "kotlin", "swift": "swift",
}  # fmt: skip
"""Grammars by path suffix. An allow-list: one of the other grammars can hang."""


def language_of(path: str) -> str | None:
    """Return the grammar for a path, or None."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return ENDINGS.get(name.rpartition(".")[2].lower()) if "." in name else None
