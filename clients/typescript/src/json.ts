/** JSON objects as providers and agents send them. */

/** An object whose fields are the provider's. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = { [name: string]: any };

/** A JSON object; null if the text is none. */
export function parsed(text: string): Json | null {
  try {
    const found: unknown = JSON.parse(text);
    return isObject(found) ? found : null;
  } catch {
    return null;
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The objects of a list; none if it is no list. */
export function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A message's content as blocks. */
export function blocksOf(content: unknown): Json[] {
  if (typeof content === 'string') return content ? [{ type: 'text', text: content }] : [];
  return objects(content);
}

/** An object without the fields that are null or undefined. */
export function withoutNulls(value: Json): Json {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one != null));
}

/** Those of the named fields that an object has and that are not null. */
export function pick(value: Json, names: Iterable<string>): Json {
  return withoutNulls(Object.fromEntries([...names].map((name) => [name, value[name]])));
}
