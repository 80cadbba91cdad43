/* What a replay asks for, answered from the lines of the file that it is in. sessions/api/replay/replay_file.py
   writes them: a name, a tab, and JSON. */
import { firstChars } from '../manifest/texts.svelte';
import type { EntryDetail, Version } from '../manifest/entry';

/** Of a text that stands once, however many entries and versions have it. */
type Content = Pick<EntryDetail, 'text' | 'json' | 'truncated'>;
type Outline = Omit<EntryDetail, keyof Content | 'versions'> & {
  versions: (Omit<Version, 'text'> & { sha: string })[];
};

export class Answers {
  #lines = new Map<string, string>(); // parsed when they are asked for

  constructor(text: string) {
    for (let from = 0; from < text.length;) {
      const tab = text.indexOf('\t', from);
      const end = text.indexOf('\n', tab);
      this.#lines.set(text.slice(from, tab), text.slice(tab + 1, end));
      from = end + 1;
    }
  }

  /** As `fetch` does it. The last part of the address says what is asked for. */
  readonly answer = (address: string): Promise<Response> => {
    const { pathname, searchParams } = new URL(address, location.href);
    const name = pathname.slice(pathname.lastIndexOf('/') + 1);
    const text = this.#answer(name, searchParams);
    return Promise.resolve(
      text === undefined
        ? new Response('{}', { status: 404 })
        : new Response(text, { headers: { 'content-type': 'application/json' } }),
    );
  };

  get<T>(name: string): T | undefined {
    const line = this.#lines.get(name);
    return line === undefined ? undefined : (JSON.parse(line) as T);
  }

  #answer(name: string, query: URLSearchParams): string | undefined {
    const run = query.get('run') || 'recorded';
    const at = (query.get('at') ?? '').split(',').map(Number);
    const rows = (row: (i: number) => unknown) =>
      JSON.stringify({ at, rows: at.map((i) => row(i) ?? null) });
    switch (name) {
      case 'previews': {
        const lines = this.get<string[]>(`previews ${run}`) ?? [];
        if (query.has('at')) return rows((i) => lines[i]);
        const from = Number(query.get('from'));
        return JSON.stringify({ from, rows: lines.slice(from, Number(query.get('to'))) });
      }
      case 'texts':
        return rows((i) => this.#textOf(run, i)?.slice(0, firstChars));
      case 'entry':
        return this.#entry(run, Number(query.get('i')));
      case 'recitation':
        return this.#lines.get(`recitation ${run} ${query.get('step')}`);
      case 'find':
        return this.#find(query.get('q') ?? '');
      case 'notes':
        return this.#lines.get(name);
      default:
        return this.#lines.get(`${name} ${run}`);
    }
  }

  #content(sha: string): Content {
    return this.get<Content>(`content ${sha}`) ?? { text: '', json: '', truncated: false };
  }

  #textOf(run: string, i: number): string | undefined {
    const outline = this.get<Outline>(`entry ${run} ${i}`);
    return outline && this.#content(outline.sha).text;
  }

  #entry(run: string, i: number): string | undefined {
    const outline = this.get<Outline>(`entry ${run} ${i}`);
    if (!outline) return undefined;
    const versions = outline.versions.map((version) => ({
      ...version,
      text: this.#content(version.sha).text,
    }));
    return JSON.stringify({ ...outline, ...this.#content(outline.sha), versions });
  }

  /** The original blocks whose text has all words, "as typed" or single. */
  #find(query: string): string {
    const words = (query.toLowerCase().match(/"[^"]*"|\S+/g) ?? []).map((word) =>
      word.replaceAll('"', ''),
    );
    const hits = [];
    for (let i = 0; ; i++) {
      const outline = this.get<Outline>(`entry recorded ${i}`);
      if (!outline) break;
      if (outline.message === null) continue;
      const text = this.#content(outline.sha).text.toLowerCase();
      if (words.every((word) => text.includes(word)))
        hits.push({ message: outline.message, index: outline.index, replacement: false });
    }
    return JSON.stringify({ hits, next: null });
  }
}
