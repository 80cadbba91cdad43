/* The changed settings of a draft in the page's address. */
import { withValue, type Field, type PolicyDocument, type Value } from './policy';

export function toHash(changed: [string, Value][]): string {
  const said = changed.map(([path, value]) => `${path}=${JSON.stringify(value)}`);
  return said.length ? `#${said.map(encodeURIComponent).join('&')}` : '';
}

/** The document with the values that an address sets; what it does not know or cannot read stays as it is. */
export function fromHash(hash: string, document: PolicyDocument, fields: Field[]): PolicyDocument {
  const known = new Set(fields.map((field) => field.path));
  let made = document;
  for (const part of hash.slice(1).split('&').filter(Boolean)) {
    try {
      const [path, ...rest] = decodeURIComponent(part).split('=');
      if (known.has(path)) made = withValue(made, path, JSON.parse(rest.join('=')) as Value);
    } catch {
      // An address that was cut short.
    }
  }
  return made;
}
