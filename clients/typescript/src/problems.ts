/** Errors of the client. */

import type { components } from './api.js';
import type { Json } from './json.js';

/** An error of the server (RFC 9457): what happened, and in `detail` what to do. */
export type Problem = Partial<components['schemas']['Problem']> & Json;

const OVER_BUDGET = 402;
const PAUSED = 423;
const PAUSED_SECONDS = 5;

/** The server refused the request permanently: a problem with status, title and fields. */
export class Refused extends Error {
  override name = 'Refused';

  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    const said = problem.detail || problem.title || 'no reason given';
    const pointers = (problem.errors ?? []).map((error) => error.pointer || '');
    const fields = pointers.filter((pointer) => !said.includes(pointer)).join(', ');
    super(`${status}: ${said}${fields && ` (${fields})`}`);
  }
}

/** A budget refused the call. */
export class OverBudget extends Refused {
  override name = 'OverBudget';
  /** Whether a person can still approve it. */
  readonly requireApproval = Boolean(this.problem.require_approval);
  readonly approval: unknown = this.problem.approval;
  /** The state of each budget. */
  readonly budgets: Json[] = this.problem.budgets ?? [];
}

/** A person has paused the session; `retryAfter` says in how many seconds to ask again. */
export class Paused extends Refused {
  override name = 'Paused';

  constructor(
    status: number,
    problem: Problem,
    readonly retryAfter: number = PAUSED_SECONDS,
  ) {
    super(status, problem);
  }
}

/**
 * No answer in time. Repeating the same call on this connection is safe: it reuses the
 * Idempotency-Key, so nothing is stored twice.
 */
export class Unreachable extends Error {
  override name: string = 'Unreachable';
}

/**
 * No answer, and trying again would not help: the certificate is not trusted, there is no TLS at
 * the port, or there is no such name. Browsers do not say which; there it is Unreachable.
 */
export class Misaddressed extends Unreachable {
  override name = 'Misaddressed';
}

/** A wrapped client was asked for what `wrap` cannot manage; nothing was sent. */
export class NotManaged extends Error {
  override name = 'NotManaged';

  constructor(what: string, why: string) {
    super(
      `ContextLab does not manage ${what}: ${why}. Nothing was sent. Call the model another way, ` +
        'or with the client as it was before wrap().',
    );
  }
}

/** The error for an answer that is none of success. */
export function refusal(status: number, problem: Problem, retryAfter?: number): Refused {
  if (status === PAUSED) return new Paused(status, problem, retryAfter);
  return new (status === OVER_BUDGET ? OverBudget : Refused)(status, problem);
}

/** Throw Paused or OverBudget if a budget check refuses the call. */
export function throwIfRefused(check: components['schemas']['Checked']): void {
  const problem: Problem = { ...check, detail: check.reason };
  if (check.paused) throw new Paused(PAUSED, problem, check.retry_after ?? undefined);
  if (!check.can_proceed) throw new OverBudget(OVER_BUDGET, problem);
}
