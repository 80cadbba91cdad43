/**
 * Wrapper for clients of @anthropic-ai/sdk and openai that sends the managed context instead of the
 * whole history.
 *
 * A wrapped client is one of a subclass of its own class, whose `makeRequest` is ours: every method
 * of the SDK ends there, whatever it is called and whatever it returns.
 */

import type { SessionFields } from './answers.js';
import { answered, headersOf, type SdkOptions, type SdkResponse } from './call.js';
import { CHAT } from './forms/chat.js';
import type { ApiForm } from './forms/form.js';
import { MESSAGES } from './forms/messages.js';
import { RESPONSES } from './forms/responses.js';
import { ManagedSession } from './managed.js';
import { NotManaged } from './problems.js';
import { ContextLab } from './sessions.js';

const FORMS: Record<Sdk, Record<string, ApiForm>> = {
  Anthropic: { 'v1/messages': MESSAGES },
  OpenAI: { 'chat/completions': CHAT, responses: RESPONSES },
};
/** Paths below which nothing sends a conversation to a model. */
const NO_MODEL = new RegExp(
  '^(v1/(messages/count_tokens|files|skills)\\b|(responses/input_tokens|embeddings|moderations' +
    '|files|uploads|vector_stores|audio|images|models|containers|skills)\\b' +
    '|(responses|chat/completions)/(?!compact$)[^/]+(/cancel)?$)',
);

/** Marks options that have a managed context. */
const SENT = Symbol('sent by ContextLab');

type Sdk = 'Anthropic' | 'OpenAI';
type MakeRequest = (
  options: SdkOptions | Promise<SdkOptions>,
  retriesRemaining: number | null,
  ...rest: unknown[]
) => Promise<SdkResponse>;

type SdkClass = new (...given: unknown[]) => SdkClient;

interface SdkClient {
  makeRequest: MakeRequest;
  withOptions(options: object): SdkClient;
  _options?: { defaultHeaders?: unknown };
  apiVersion?: string;
  deploymentName?: string;
}

/** Which session a wrapped client is, with its fields. */
export interface WrapOptions extends SessionFields {
  /** Your own id of the session. */
  session: string;
  server?: ContextLab;
  /** How long a call of a paused session waits, in seconds; an hour by default. */
  pausedAtMost?: number;
}

/**
 * Wrap a client of @anthropic-ai/sdk or openai, also of Bedrock, Vertex AI and Azure, to use managed
 * contexts.
 *
 * Each `messages.create`, `chat.completions.create` and `responses.create`, and all that is built
 * on them (streams, `parse`, tool runners, `beta`, raw responses), stores its messages, sends the
 * managed context, and stores the reply with its usage. The agent keeps building its whole history;
 * known messages are recognized. Where the policy edits, the model can read back what stubs name,
 * which the agent does not see. One client is one session. If our server does not answer, the call
 * is sent unchanged with a warning, so that the agent never stops because of us. Other ways to send
 * a conversation throw NotManaged. Throws TypeError for other clients.
 */
export function wrap<Client extends object>(client: Client, options: WrapOptions): Client {
  const sdk = sdkOf(client);
  const { session, server = new ContextLab(), pausedAtMost, ...fields } = options;
  const managed = new Map<string, ManagedSession>();
  const managedBy = ({ format }: ApiForm): ManagedSession => {
    const known =
      managed.get(format) ?? new ManagedSession(server, session, fields, format, pausedAtMost);
    managed.set(format, known);
    return known;
  };
  const original = client as unknown as SdkClient;
  const { apiVersion, deploymentName: deployment } = original;
  // Azure's client leaves these out of its copies.
  const made = original.withOptions(apiVersion ? { apiVersion, deployment } : {});
  Object.setPrototypeOf(made, classOf(made.constructor as SdkClass, sdk, managedBy));
  return made as unknown as Client;
}

/** The prototype of a subclass of a client's class whose calls are managed. */
function classOf(kind: SdkClass, sdk: Sdk, managedBy: (form: ApiForm) => ManagedSession): object {
  class Managed extends kind {}
  Managed.prototype.makeRequest = async function (this: SdkClient, given, ...rest) {
    const options = await given;
    const send = (one: SdkOptions): Promise<SdkResponse> =>
      kind.prototype.makeRequest.call(this, { ...one, [SENT]: true }, ...rest);
    // A retry of the SDK's own sends the same context again.
    const form = SENT in options ? null : formOf(sdk, options);
    if (!form) return kind.prototype.makeRequest.call(this, options, ...rest);
    const betas = headersOf(this._options?.defaultHeaders)['anthropic-beta'] ?? '';
    return answered(form, managedBy(form), options, betas, send);
  };
  return Managed.prototype;
}

/** The API of a call; null if it sends no conversation. Throws NotManaged. */
function formOf(sdk: Sdk, { method, path }: SdkOptions): ApiForm | null {
  if (method.toUpperCase() !== 'POST') return null;
  const address = (path.split('?')[0] ?? '').replace(/^\/+|\/+$/g, '');
  const form = FORMS[sdk][address];
  if (form) return form;
  if (NO_MODEL.test(address)) return null;
  throw new NotManaged(`POST /${address}`, 'it is not one of the APIs that we know');
}

function sdkOf(client: object): Sdk {
  const { makeRequest, withOptions, backendMiddleware } = client as Record<string, unknown>;
  const isSdk = typeof makeRequest === 'function' && typeof withOptions === 'function';
  // Clients of clouds have no list of models. Without such middleware, `makeRequest` answers in a
  // protocol of the cloud's own.
  const isKnown = 'models' in client || typeof backendMiddleware === 'function';
  if (isSdk && 'messages' in client && isKnown) return 'Anthropic';
  if (isSdk && 'chat' in client && 'responses' in client) return 'OpenAI';
  throw new TypeError(
    'wrap() takes a client of @anthropic-ai/sdk or openai, such as new Anthropic(), ' +
      `not ${client?.constructor?.name}. Pass one, or use new ContextLab().session('…').`,
  );
}
