/* Which parts of a request a log lacks. */

export type Request = { system?: unknown; tools?: unknown; messages?: unknown };

/** In words; "" if nothing is missing. A system prompt may be a message, as OpenAI has it. */
export function absentFrom({ system, tools, messages }: Request): string {
  const rows: { role?: string }[] = Array.isArray(messages) ? messages : [];
  const given = Array.isArray(system) ? system.length : system;
  const prompted = given || rows.some((one) => one.role === 'system' || one.role === 'developer');
  const listed = Array.isArray(tools) && tools.length;
  return [prompted ? '' : 'the system prompt', listed ? '' : 'the tools']
    .filter(Boolean)
    .join(' and ');
}
