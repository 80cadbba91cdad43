/* Asking the server, and what it says when it cannot answer. */

export type Problem = { title: string; detail: string; reference: string; status?: number };

class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.title);
  }
}

async function problemOf(answer: Response): Promise<Problem> {
  const body = (await answer.json().catch(() => ({}))) as Record<string, unknown>;
  const text = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : '');
  return {
    title:
      text('title') ||
      (answer.status === 404
        ? 'This is not here any more'
        : `The server answered ${answer.status}`),
    detail: text('detail'),
    reference: text('request_id') || answer.headers.get('x-request-id') || '',
    status: answer.status,
  };
}

type Source = (address: string, options: RequestInit) => Promise<Response>;
let source: Source = (address, options) => fetch(address, options);

/** Has another source answer than the server. */
export function answerFrom(other: Source): void {
  source = other;
}

async function answered(address: string, options: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await source(address, options);
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new Refused({
      title: 'The server cannot be reached',
      detail: 'Is it running? Nothing on this page is lost.',
      reference: '',
    });
  }
  if (!answer.ok) throw new Refused(await problemOf(answer));
  return answer;
}

export async function ask<T>(address: string, options: RequestInit = {}): Promise<T> {
  const answer = await answered(address, options);
  return (
    answer.headers.get('content-type')?.includes('json') ? answer.json() : answer.text()
  ) as Promise<T>;
}

const sent = (body: unknown, method: 'POST' | 'DELETE'): RequestInit => ({
  method,
  headers: {
    'content-type': 'application/json',
    'x-csrftoken':
      document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? '',
  },
  body: body === undefined ? undefined : JSON.stringify(body),
});

export const send = <T>(
  address: string,
  body: unknown,
  method: 'POST' | 'DELETE' = 'POST',
): Promise<T> => ask<T>(address, sent(body, method));

/** Sends and returns the answer unread, for one that streams. */
export const open = (address: string, body: unknown, signal: AbortSignal): Promise<Response> =>
  answered(address, { ...sent(body, 'POST'), signal });

export function problemFrom(error: unknown): Problem | null {
  if (error instanceof Refused) return error.problem;
  if ((error as Error)?.name === 'AbortError') return null;
  console.error(error);
  return { title: 'This page made a mistake', detail: String(error), reference: '' };
}

/** An address with more parameters: `manifest_url` may carry some already. */
export function withQuery(address: string, query: Record<string, string | number>): string {
  const url = new URL(address, location.href);
  for (const [name, value] of Object.entries(query))
    if (value !== '') url.searchParams.set(name, String(value));
  return url.pathname + url.search;
}
