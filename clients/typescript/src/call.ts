/** One call through a wrapped client, between the SDK and its connection. */

import { AgentCall } from './agent.js';
import { dataOf, streamOf } from './events.js';
import { type ApiForm, knownReply } from './forms/form.js';
import { isObject, type Json, parsed } from './json.js';
import type { ManagedSession } from './managed.js';
import { NotManaged } from './problems.js';
import { Relay } from './relay.js';

const BETA = 'anthropic-beta';
const OF_THE_WIRE = ['content-encoding', 'content-length', 'transfer-encoding'];

/** What an SDK sends. */
export interface SdkOptions {
  method: string;
  path: string;
  body?: unknown;
  headers?: unknown;
  stream?: boolean;
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | null | undefined;
}

/** What an SDK has when an answer begins. */
export interface SdkResponse {
  response: Response;
  options: SdkOptions;
  controller: AbortController;
}

type Send = (options: SdkOptions) => Promise<SdkResponse>;

/**
 * Answer a call of the agent by one or several model calls.
 *
 * `betas` are those of the client itself; `send` makes a model call. Throws NotManaged, OverBudget
 * and Paused.
 */
export async function answered(
  form: ApiForm,
  managed: ManagedSession,
  options: SdkOptions,
  betas: string,
  send: Send,
): Promise<SdkResponse> {
  // As the SDK would send it, with lists in place of what can be read only once.
  const request: unknown = JSON.parse(JSON.stringify(options.body ?? null));
  const why = isObject(request) ? form.notManaged(request) : 'its body is no JSON object';
  if (why || !isObject(request)) throw new NotManaged('this call', why);
  const own = headersOf(options.headers)[BETA] ?? betas;
  const call = await AgentCall.of(managed, form.asked(request), own);
  const next = (): SdkOptions => optionsOf(form, call, options, request);
  const first = await send(next());
  if (!call.isManaged) return first;
  return options.stream
    ? streamed(new Relay(form, call, request), first, () =>
        send({ ...next(), idempotencyKey: undefined, signal: first.controller.signal }),
      )
    : whole(form, call, first, () => send({ ...next(), idempotencyKey: undefined }));
}

/** The SDK's options of the next model call. */
function optionsOf(form: ApiForm, call: AgentCall, options: SdkOptions, request: Json): SdkOptions {
  const isOurs = call.isManaged || form.format === 'anthropic';
  const body = isOurs ? form.sent(request, call.request) : request;
  if (!Object.keys(call.headers).length) return { ...options, body };
  return { ...options, body, headers: { ...headersOf(options.headers), ...call.headers } };
}

async function whole(
  form: ApiForm,
  call: AgentCall,
  first: SdkResponse,
  proceed: () => Promise<SdkResponse>,
): Promise<SdkResponse> {
  const answers: Json[] = [];
  for (let made = first; ; made = await proceed()) {
    const text = await made.response.text();
    const answer = parsed(text);
    const reply = knownReply(form, answer);
    if (answer && reply) answers.push(answer);
    if (reply && (await call.again(reply))) continue;
    const isJoined = call.hasHidden && answers.length > 0;
    const content = isJoined ? JSON.stringify(form.shown(answers, call)) : text;
    return { ...made, response: responseOf(made.response, content) };
  }
}

function streamed(
  relay: Relay,
  first: SdkResponse,
  proceed: () => Promise<SdkResponse>,
): SdkResponse {
  const data = (made: SdkResponse) => dataOf(made.response.body ?? new ReadableStream());
  const events = relay.events(data(first), async () => data(await proceed()));
  return { ...first, response: responseOf(first.response, streamOf(events)) };
}

/** The response for the agent, given one of the provider. */
function responseOf(given: Response, body: BodyInit): Response {
  const headers = new Headers(given.headers);
  for (const name of OF_THE_WIRE) headers.delete(name);
  const { status, statusText, url } = given;
  const made = new Response(body, { status, statusText, headers });
  return Object.defineProperty(made, 'url', { value: url });
}

/** Headers as an SDK takes them, by their names in lower case; null removes one. */
export function headersOf(given: unknown): Record<string, string | null> {
  const made: Record<string, string | null> = {};
  const add = (name: string, value: unknown): void => {
    const values = Array.isArray(value) ? value.join(',') : String(value);
    made[name.toLowerCase()] = value === null ? null : values;
  };
  if (given instanceof Headers) given.forEach((value, name) => add(name, value));
  else if (Array.isArray(given)) given.forEach(([name, value]) => add(name, value));
  else if (isObject(given) && given.values instanceof Headers) {
    given.values.forEach((value, name) => add(name, value));
    for (const name of given.nulls ?? []) add(name, null);
  } else if (isObject(given))
    for (const [name, value] of Object.entries(given)) if (value !== undefined) add(name, value);
  return made;
}
