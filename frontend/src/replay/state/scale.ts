/* What the pictures of sizes are measured against: the model's window, or the largest size in them.
   A cookie remembers it, since a reader of one small session reads several. */
import type { SessionHead } from '../manifest/manifest';
import * as format from '../../web/format';

export type Scale = 'window' | 'used';

export const rememberedScale = (): Scale | null =>
  (/(?:^|; )contextlab_scale=(used|window)/.exec(document.cookie)?.[1] as Scale | undefined) ??
  null;

export function rememberScale(scale: Scale): void {
  document.cookie = `contextlab_scale=${scale};path=/;max-age=31536000;samesite=lax`;
}

type Window = Pick<SessionHead, 'window' | 'window_assumed'>;

/** A share of the window in percent; nothing where the window is a guess, since the share would be one too. */
export const ofWindow = (session: Window, tokens: number, digits = 0): string =>
  session.window_assumed ? '' : format.percent(tokens / session.window, digits);

export const windowName = (session: Window): string =>
  `${format.round(session.window)}${session.window_assumed ? ' (assumed)' : ''}`;
