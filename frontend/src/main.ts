import './main.css';
import './islands';
import './web/theme';
import './web/more';
import './web/copy';
import './web/keyboard/keyboard';
import './web/keyboard/list';
import './web/ages';
import './record/sessions';

/** Scripts of single pages, and what such a page has. */
const parts: Record<string, () => Promise<unknown>> = {
  'form[data-upload]': () => import('./imports/imports'),
  '#job, #report': () => import('./jobs/jobs'),
  'form[data-makes-key]': () => import('./accounts/keys'),
  'form[data-policy-form]': () => import('./policies/form'),
  'body[data-why]': () => import('./replay/why'),
  '.tour': () => import('./web/tour'),
  '[data-tool-graph]': () => import('./tools/graph'),
};
for (const [selector, load] of Object.entries(parts))
  if (document.querySelector(selector)) void load();

// After `load`: between DOMContentLoaded and `load`, htmx would never begin.
addEventListener('load', () => {
  if (document.querySelector('[data-topic]')) void import('./web/follow');
  if (document.querySelector('[hx-trigger]:not([hx-trigger="moved"])')) void import('./web/asked');
});
