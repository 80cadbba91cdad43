import { readdirSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../src');
const files = (readdirSync(root, { recursive: true }) as string[]).filter((name) =>
  /\.(ts|svelte)$/.test(name),
);

/** The files that each file imports, now or when it needs them. */
const imports = new Map(
  files.map((file) => {
    const text = readFileSync(resolve(root, file), 'utf8');
    const found = [...text.matchAll(/(?:from|import) ?\(?'(\.[^']+)'/g)].map(([, name]) =>
      relative(root, resolve(root, dirname(file), name)),
    );
    return [
      file,
      found.flatMap((name) => files.filter((one) => one === name || one === `${name}.ts`)),
    ];
  }),
);

// Each may use those before it; docs/architecture.md says what each is about.
const subjects =
  'web jobs accounts policies budgets reviews memory record live replay lab tools dashboard';
const levelOf = (file: string) => subjects.split(' ').indexOf(file.split('/')[0]);

describe('imports', () => {
  it('go from a subject to one before it, or stay within it', () => {
    const upward = [...imports].flatMap(([file, found]) =>
      levelOf(file) < 0
        ? []
        : found.filter((one) => levelOf(one) > levelOf(file)).map((one) => `${file} → ${one}`),
    );
    expect(upward).toEqual([]);
  });

  it.each([
    ['files', (file: string) => file],
    ['folders', dirname],
  ])('of %s never come back to where they began', (_, roomOf) => {
    const rooms = new Map<string, Set<string>>();
    for (const [file, found] of imports) {
      const room = rooms.get(roomOf(file)) ?? new Set();
      for (const one of found) if (roomOf(one) !== roomOf(file)) room.add(roomOf(one));
      rooms.set(roomOf(file), room);
    }
    const circles: string[] = [];
    const visit = (room: string, way: string[]) => {
      if (way.includes(room)) circles.push([...way.slice(way.indexOf(room)), room].join(' → '));
      else if (!done.has(room))
        for (const next of rooms.get(room) ?? []) visit(next, [...way, room]);
      done.add(room);
    };
    const done = new Set<string>();
    for (const room of rooms.keys()) visit(room, []);
    expect(circles).toEqual([]);
  });
});
