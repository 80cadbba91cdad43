"""Pages and thoughts of the agent of the long session."""

from __future__ import annotations

from sessions.demo.survey import Module


def page(module: Module) -> str:
    """A page of the module reference."""
    parts = [f"# {module.dotted}\n\n{module.says}\n"]
    if module.names:
        rows = [f"| `{n.name}` | {n.form}, {n.lines} lines | {n.says} |" for n in module.names]
        parts.append("| name | form | what it is |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n")
    if module.constants:
        parts.append("Constants: " + ", ".join(f"`{name}`" for name in module.constants) + ".\n")
    if module.raises:
        parts.append("Raises " + ", ".join(f"`{name}`" for name in module.raises) + ".\n")
    if module.callers:
        lines = "\n".join(f"- `{path}`, line {line}" for path, line in module.callers)
        parts.append(f"Used by:\n\n{lines}\n")
    else:
        parts.append("No module imports it.\n")
    return "\n".join(parts)


def notes(module: Module) -> list[str]:
    """Facts about a module, most important first; all are true."""
    found = [*_about_use(module), *_about_names(module)]
    if module.raises:
        errors = ", ".join(module.raises)
        found.append(f"It raises {errors}; callers have to know when, so that goes in.")
    if module.constants:
        names = ", ".join(module.constants[:3])
        found.append(f"{names}: the page names the constants, their values stay in the code.")
    return found


def _about_use(module: Module) -> list[str]:
    many = len(module.callers)
    if many == 0:
        return ["Nothing imports it: an entry that a framework finds by its name, or dead."]
    if many == 1:
        return [f"Only {module.callers[0][0]} uses it, so one line about its caller is enough."]
    if many > 8:
        return [f"{many} modules lean on it. A mistake on this page would be copied most often."]
    first, second = module.callers[0][0], module.callers[1][0]
    return [f"Used in {many} places, among them {first} and {second}; the second is worth a look."]


def _about_names(module: Module) -> list[str]:
    found = []
    if module.silent:
        names = ", ".join(module.silent[:4])
        found.append(f"No docstring on {names}. I leave the cell empty; I do not invent sentences.")
    wide = max(module.names, key=lambda name: name.fields, default=None)
    if wide and wide.fields >= 5:
        found.append(f"`{wide.name}` has {wide.fields} fields, which a table shows best.")
    longest = module.longest
    if longest and longest.lines > 25:
        found.append(
            f"`{longest.name}` is {longest.lines} lines, the longest here. What goes in and comes "
            "out matters on the page, the way between does not."
        )
    elif longest:
        found.append(f"Short functions; even `{longest.name}` has only {longest.lines} lines.")
    return found


BEFORE_READING = (
    "Next is `{path}`.",
    "`{path}`, {lines} lines.",
    "On to `{path}`; its name alone does not tell me what to expect.",
    "Now `{path}`.",
    "`{path}` was named in the module before, so it comes now.",
    "I continue with `{path}`.",
    "",
    "The next one by name is `{path}`.",
    "",
    "`{dotted}` next; I read it whole.",
)

BEFORE_SEARCHING = (
    "Who uses it?",
    "Its callers, before I describe it.",
    "",
    "And from where is it called?",
    "",
    "What the others take from it says what matters.",
    "",
)

BEFORE_WRITING = (
    "That is enough for its page.",
    "",
    "I write the page.",
    "The page, with its own first sentence on top.",
    "",
    "Written down while it is in front of me.",
    "Page {number}.",
    "",
)
