/** What the programs of the tests have in common. */

/** What the test says in the environment. */
export interface Environment {
  /** The provider's address. */
  PROVIDER: string;
  /** A result too long to stay in a context. */
  LOG: string;
  [name: string]: string;
}

declare const process: { env: Environment; argv: string[] };

export const { env } = process;

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Any = any;

/** Run the program that the command line names, and print what it returns. */
export async function run(programs: Record<string, () => Promise<unknown>>): Promise<void> {
  const name = process.argv[2] ?? '';
  console.log(JSON.stringify(await programs[name]?.()));
}

/** The name and the sentence of an error. */
export async function failure(call: () => unknown): Promise<string[]> {
  try {
    return ['none', JSON.stringify(await call())];
  } catch (error) {
    return error instanceof Error ? [error.name, error.message] : ['', String(error)];
  }
}

/** What a stream gives. */
export async function all<T>(stream: AsyncIterable<T> | Promise<AsyncIterable<T>>): Promise<T[]> {
  const made: T[] = [];
  for await (const one of await stream) made.push(one);
  return made;
}
