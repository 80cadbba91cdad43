/* <time data-age datetime="…">: "12 s", or "12 s ago" with data-age="ago", stays true while nothing else changes; the
   server's `age` and `ago` write alike. */
const units: [seconds: number, name: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'm'],
  [1, 's'],
];

export function age(seconds: number): string {
  const [unit, name] = units.find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.max(0, Math.floor(seconds / unit))} ${name}`;
}

export function ago(seconds: number): string {
  return seconds < 1 ? 'just now' : `${age(seconds)} ago`;
}

function tick(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-age]')) {
    const written = time.dataset.age === 'ago' ? ago : age;
    const text = written((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

if (typeof document !== 'undefined' && document.querySelector('[hx-get]')) setInterval(tick, 5000);
