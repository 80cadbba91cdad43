/* A policy as the server stores it, and its values as a form shows them. */

export type Value = number | string | boolean | string[];
export type PolicyStep = { strategy: string; parameters: Record<string, Value> };
export type Lifetime = 'recorded' | '5m' | '1h' | 'mixed';
export type PolicyDocument = { name: string; version: number; objective: string; lifetime: Lifetime; reserve: number; steps: PolicyStep[]; recite: Record<string, Value> | null };

export type Field = {
  path: string; // "steps[2].parameters.age"
  name: string;
  kind: 'int' | 'float' | 'bool' | 'choice' | 'words' | 'text';
  value: Value;
  low: number | null;
  high: number | null;
  choices: string[];
  default: Value;
  help: string;
};

const parts = (path: string): (string | number)[] => path.split(/[.[\]]+/).filter(Boolean).map((part) => (/^\d+$/.test(part) ? Number(part) : part));

export function valueAt(document: PolicyDocument, path: string): Value | undefined {
  let place: any = document;
  for (const part of parts(path)) place = place?.[part];
  return place;
}

/** The document with one other value; what has not changed is shared. */
export function withValue(document: PolicyDocument, path: string, value: Value): PolicyDocument {
  const put = (place: any, [first, ...rest]: (string | number)[]): any => {
    const made = Array.isArray(place) ? [...place] : { ...place };
    made[first] = rest.length ? put(place[first], rest) : value;
    return made;
  };
  return put(document, parts(path));
}

const values = ({ objective, lifetime, reserve, steps, recite }: PolicyDocument): string => JSON.stringify([objective, lifetime, reserve, steps, recite]);

export const isSame = (a: PolicyDocument, b: PolicyDocument): boolean => values(a) === values(b);
