/* The choice lives in a cookie, so that the server writes data-theme before the first paint. */
const order = ['system', 'light', 'dark'] as const;
type Theme = (typeof order)[number];

const root = document.documentElement;
const chosen = (): Theme => order.find((theme) => theme === root.dataset.theme) ?? 'system';

function label(button: HTMLElement): void {
  const theme = chosen();
  button.dataset.shows = theme;
  button.setAttribute('aria-label', `Theme: ${theme}. Change it`);
  button.title = `Theme: ${theme}`;
}

function choose(theme: Theme, button: HTMLElement): void {
  root.dataset.theme = theme;
  document.cookie = `contextlab_theme=${theme};path=/;max-age=31536000;samesite=lax`;
  label(button);
  announceTheme();
}

/** Canvases cannot follow a style sheet by themselves. */
function announceTheme(): void {
  window.dispatchEvent(new Event('ctx-theme'));
}

for (const button of document.querySelectorAll<HTMLElement>('[data-theme-choice]')) {
  button.hidden = false;
  label(button);
  button.addEventListener('click', () =>
    choose(order[(order.indexOf(chosen()) + 1) % order.length]!, button),
  );
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', announceTheme);
