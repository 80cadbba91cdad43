/** HTTP connection of the client: requests, retries, and errors. */

import type { paths } from './api.js';
import { type Json, parsed } from './json.js';
import { Misaddressed, refusal, Unreachable } from './problems.js';

/** How long a request is tried again by default, in seconds. */
const PATIENCE = 180;
/** Per attempt, in seconds. */
const TIMEOUT = 30;
/** Seconds between attempts that say no Retry-After: the first pause, doubled up to the longest. */
const FIRST_PAUSE = 0.2;
const LONGEST_PAUSE = 10;
const AGAIN = new Set([429, 502, 503, 504]);

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';
type Below<P> = P extends `/api/v1/${infer Rest}` ? Rest : never;

/** Addresses below /api/v1/, as in the server's OpenAPI document. */
export type Address = Below<keyof paths>;

type Operation<M extends Method, A extends Address> =
  paths[`/api/v1/${A}`] extends Record<Lowercase<M>, infer O> ? O : never;
type Content<T> = T extends { content: { 'application/json': infer B } } ? B : never;
type Success = 200 | 201 | 202;

/** What an operation answers. */
export type Answer<M extends Method, A extends Address> =
  Operation<M, A> extends { responses: infer R } ? Content<R[keyof R & Success]> : never;

/** What an operation takes: the parts of its address, its query, and its body. */
export interface Given<M extends Method, A extends Address> {
  path?: Operation<M, A> extends { parameters: { path: infer P } } ? P : never;
  query?: Operation<M, A> extends { parameters: { query?: infer Q } } ? Q : never;
  body?: Operation<M, A> extends { requestBody?: infer B } ? Content<NonNullable<B>> : never;
}

export interface Options {
  /** Default: CONTEXTLAB_URL, or http://127.0.0.1:8765. */
  url?: string | undefined;
  /** Default: CONTEXTLAB_TOKEN. */
  token?: string | undefined;
  /** Per attempt, in seconds. */
  timeout?: number | undefined;
  /** How long a request is tried again while the server is away or busy, in seconds. */
  patience?: number | undefined;
}

/** A server and a key. */
export class Connection {
  readonly url: string;
  readonly patience: number;
  readonly #timeout: number;
  readonly #token: string;
  #unanswered = new Map<string, string>();

  /** Throws TypeError without a token. */
  constructor(options: Options = {}) {
    this.url = (options.url || environment('CONTEXTLAB_URL') || 'http://127.0.0.1:8765').replace(
      /\/+$/,
      '',
    );
    this.#token = options.token || environment('CONTEXTLAB_TOKEN') || '';
    if (!this.#token)
      throw new TypeError(
        'No token. Pass one or set CONTEXTLAB_TOKEN; `contextlab token create --team NAME` ' +
          'creates it.',
      );
    this.#timeout = options.timeout ?? TIMEOUT;
    this.patience = options.patience ?? PATIENCE;
  }

  /** This connection with less patience, for callers that cannot wait. */
  hurried(patience: number): this {
    const kind = this.constructor as new (options: Options) => this;
    const made = new kind({
      url: this.url,
      token: this.#token,
      timeout: this.#timeout,
      patience: Math.min(this.patience, patience),
    });
    made.#unanswered = this.#unanswered;
    return made;
  }

  /**
   * Call an operation of the API, with retries; all attempts carry the same Idempotency-Key.
   *
   * `address` is its path in the OpenAPI document below /api/v1/. Throws Refused and Unreachable,
   * at once if it is Misaddressed.
   */
  async request<M extends Method, A extends Address>(
    method: M,
    address: A,
    given: Given<M, A> = {},
  ): Promise<Answer<M, A>> {
    const parts: Json = given.path ?? {};
    const place = address.replace(/\{(\w+)\}/g, (_, name) => segment(String(parts[name])));
    const url = new URL(`${this.url}/api/v1/${place}`);
    for (const [name, value] of Object.entries((given.query ?? {}) as Json))
      if (value != null) url.searchParams.set(name, String(value));
    const body = given.body === undefined ? undefined : JSON.stringify(given.body);
    return (await this.#answer(method, url.href, body)) as Answer<M, A>;
  }

  async #answer(method: Method, url: string, body?: string): Promise<Json> {
    const call = [method, url, body].join('\n');
    const key = this.#unanswered.get(call) ?? random();
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#token}` };
    if (method !== 'GET') headers['Idempotency-Key'] = key;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const limit = now() + this.patience;
    let pause = FIRST_PAUSE;
    let last = '';
    for (;;) {
      let wait = pause * (0.5 + Math.random() / 2);
      try {
        const answer = await fetch(url, {
          method,
          headers,
          ...(body === undefined ? {} : { body }),
          redirect: 'manual',
          signal: AbortSignal.timeout(this.#timeout * 1000),
        });
        const text = await answer.text();
        if (!AGAIN.has(answer.status)) {
          this.#unanswered.delete(call);
          return bodyOf(answer, text);
        }
        last = `status ${answer.status}`;
        wait = retryAfter(answer) ?? wait;
      } catch (error) {
        // fetch itself throws only these: no connection, a wrong CORS header, or no time left.
        if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
        const { cause } = error as { cause?: unknown };
        const lasting = cause instanceof Error ? misaddressed(this.url, cause, last !== '') : '';
        if (lasting) throw new Misaddressed(lasting);
        last = `${error.message}${cause instanceof Error ? ` (${cause.message})` : ''}`;
      }
      if (now() + wait > limit) break;
      await sleep(wait);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
    if (method !== 'GET') this.#unanswered.set(call, key);
    const { pathname } = new URL(url);
    throw new Unreachable(`${this.url} did not answer ${method} ${pathname}: ${last}`);
  }
}

/** Codes by which Node names certificates that it does not trust. */
const UNTRUSTED = /CERT|LEAF_SIGNATURE|INVALID_CA|HOSTNAME_MISMATCH/;

/**
 * What is wrong if a request would fail again; empty if it may not. A name must have failed before,
 * because a network that just came up knows none.
 */
function misaddressed(url: string, cause: Error & { code?: string }, again: boolean): string {
  const code = cause.code ?? '';
  if (UNTRUSTED.test(code))
    return (
      `The certificate of ${url} is not trusted: ${cause.message}. Use the name that it is for; ` +
      'set NODE_EXTRA_CA_CERTS to the certificate of an authority of your own'
    );
  if (code.includes('WRONG_VERSION_NUMBER') || cause.message.includes('wrong version number'))
    return `${url} does not speak TLS. Use its address with http://`;
  if (code === 'ENOTFOUND' && again)
    return `There is no server of the name in ${url}. Check the address`;
  return '';
}

/** Wait, in seconds. */
export function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** Seconds of a clock that never goes back. */
export function now(): number {
  return performance.now() / 1000;
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}

/** An id as one segment of a path. */
function segment(part: string): string {
  // URLs take these for folders, escaped or not, and fetch would ask for another address.
  if (part === '.' || part === '..') throw new TypeError(`An id cannot be "${part}"`);
  return encodeURIComponent(part.toWellFormed());
}

/** 32 hexadecimal digits; `crypto.randomUUID` is missing on pages that came over http. */
function random(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function bodyOf(answer: Response, text: string): Json {
  const body = text ? (parsed(text) ?? { title: answer.statusText }) : {};
  if (answer.ok) return body;
  // As from http to https: what was sent must not go elsewhere unasked.
  if (answer.type === 'opaqueredirect' || (answer.status >= 300 && answer.status < 400)) {
    const place = answer.headers.get('Location') ?? 'another address';
    throw refusal(answer.status, { title: `the server is at ${place}` });
  }
  throw refusal(answer.status, body, retryAfter(answer));
}

/**
 * What the server asks for, and up to half more: those it turned away together should not come
 * back together.
 */
function retryAfter(answer: Response): number | undefined {
  const given = Number.parseFloat(answer.headers.get('Retry-After') ?? '');
  return Number.isNaN(given) ? undefined : given * (1 + Math.random() / 2);
}
