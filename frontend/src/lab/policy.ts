/* A policy as the server stores it, and its values as a form shows them. */

export type Value = number | string | boolean | string[];
export type PolicyStep = { strategy: string; parameters: Record<string, Value> };
export type TTL = 'recorded' | '5m' | '1h' | 'mixed';
export type PolicyDocument = {
  name: string;
  version: number;
  objective: string;
  ttl: TTL;
  reserve: number;
  board: number;
  task_budget: number;
  tools: string;
  steps: PolicyStep[];
  recite: Record<string, Value> | null;
};

export type Field = {
  path: string; // "steps[2].parameters.age"
  name: string;
  kind: 'int' | 'float' | 'bool' | 'choice' | 'words' | 'text';
  value: Value;
  low: number | null;
  high: number | null;
  choices: string[];
  default: Value;
  label: string; // reads as a sentence with value and unit: "Offload a result after", 3, "steps"
  help: string;
  group: string;
  unit: string; // begins with "%" for a share, which is shown in percent
  zero: string; // what 0 is called
  called: Record<string, string>; // names of choices
  slider: [number, number] | null;
  advanced: boolean; // folded
  objective: string; // the only one under which it has an effect; "" for both
};

type Parts = Record<string | number, unknown>; // a document, or a list or record in one

const parts = (path: string): (string | number)[] =>
  path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));

export function valueAt(document: PolicyDocument, path: string): Value | undefined {
  let place: unknown = document;
  for (const part of parts(path)) place = (place as Parts | undefined)?.[part];
  return place as Value | undefined;
}

/** The document with one other value; what has not changed is shared. */
export function withValue(document: PolicyDocument, path: string, value: Value): PolicyDocument {
  const put = (place: Parts, [first, ...rest]: (string | number)[]): Parts => {
    const made = (Array.isArray(place) ? [...place] : { ...place }) as Parts;
    made[first] = rest.length ? put(place[first] as Parts, rest) : value;
    return made;
  };
  return put(document as unknown as Parts, parts(path)) as unknown as PolicyDocument;
}

const values = ({
  objective,
  ttl,
  reserve,
  board,
  task_budget,
  tools,
  steps,
  recite,
}: PolicyDocument): string =>
  JSON.stringify([objective, ttl, reserve, board, task_budget, tools, steps, recite]);

export const isSame = (a: PolicyDocument, b: PolicyDocument): boolean => values(a) === values(b);
