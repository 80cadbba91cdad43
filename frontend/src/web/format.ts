/* Numbers and times as the pages write them; the server's pages write the same. */

const grouped = new Intl.NumberFormat('en-US');

/** 950, 1.7k, 152.3k, 1.2M. */
export function tokens(count: number): string {
  const size = Math.abs(count);
  if (size < 1000) return String(Math.round(count));
  if (size < 999_950) return `${(count / 1000).toFixed(1)}k`;
  if (size >= 999_950_000) return `${(count / 1_000_000_000).toFixed(1)}G`;
  return `${(count / 1_000_000).toFixed(size < 9_995_000 ? 2 : 1)}M`;
}

/** A window's size has no odd hundreds: 200k, 1M. */
export function round(count: number): string {
  return count % 1000 === 0 && count >= 1000
    ? count >= 1_000_000 && count % 100_000 === 0
      ? `${count / 1_000_000}M`
      : `${count / 1000}k`
    : tokens(count);
}

export const exact = (count: number): string => grouped.format(count);

export function change(count: number): string {
  if (count === 0) return '0';
  return (count > 0 ? '+' : '−') + tokens(Math.abs(count));
}

export function exactChange(count: number): string {
  if (count === 0) return '0';
  return (count > 0 ? '+' : '−') + grouped.format(Math.abs(count));
}

/** A share of one: 76 %, 97.5 %. Only all of it is 100 % and only none of it 0 %: 0.996 is "> 99 %". */
export function percent(share: number, digits = 0): string {
  const text = (share * 100).toFixed(digits);
  const least = 10 ** -digits;
  if (Number(text) === 0) return share === 0 ? '0 %' : `< ${least} %`;
  if (Number(text) === 100)
    return share === 1 ? '100 %' : share < 1 ? `> ${100 - least} %` : '> 100 %';
  return `${text} %`;
}

const manyTimes = 10; // from this multiple on a change is a factor, as in figures.py

/** A relative change: "+21 %", "−4.9 %", "0 %"; from tenfold on the factor, "×402". */
export function relative(share: number): string {
  if (share + 1 >= manyTimes) return `×${grouped.format(Math.round(share + 1))}`;
  const size = Math.abs(share) * 100;
  const text = size.toFixed(size < 9.95 ? 1 : 0);
  return Number(text) === 0 ? '0 %' : `${share > 0 ? '+' : '−'}${text} %`;
}

/** Micro-dollars: two significant digits below a dollar, cents above. */
export function money(micro: number): string {
  const dollars = micro / 1_000_000;
  if (dollars === 0) return '$0';
  if (Math.abs(dollars) >= 1)
    return `$${dollars.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  const rounded = Number(dollars.toPrecision(2));
  const decimals = Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(Math.abs(rounded)))));
  return `$${rounded.toFixed(decimals)}`;
}

/** 850 ms, 41 s, 7 m 12 s, 3 h 5 m. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} m`;
}

/** The person's time zone; the browser's unless one is chosen. */
export const zone = (): string | undefined => document.documentElement.dataset.zone;

export function clock(ms: number): string {
  return new Date(ms).toLocaleString('en-US', {
    timeZone: zone(),
    hourCycle: 'h23',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${exact(count)} ${count === 1 ? one : many}`;
