/* uPlot, fetched when the first chart is drawn. */
import 'uplot/dist/uPlot.min.css';
import type uPlot from 'uplot';

let loaded: Promise<typeof uPlot> | undefined;

/** While it loads, it makes an Intl.NumberFormat of the browser's language, which some (en-US@posix) do
    not name in a form that Intl takes: such a language is kept from it. */
export function loadUplot(): Promise<typeof uPlot> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<typeof uPlot> {
  const taken = () => {
    try {
      return Boolean(new Intl.NumberFormat(navigator.language));
    } catch {
      return false;
    }
  };
  if (taken()) return (await import('uplot')).default;
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true });
  try {
    return (await import('uplot')).default;
  } finally {
    delete (navigator as { language?: string }).language;
  }
}
