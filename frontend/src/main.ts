import './main.css';
import './islands';
import './web/theme';
import './web/rail';
import './web/copy';
import './web/keyboard/keyboard';
import './web/keyboard/list';
import './web/ages';
import './imports/imports';
import './record/sessions';
import './jobs/jobs';
import './accounts/keys';
import './policies/form';
import './replay/why';
import './tools/graph';

// Three quarters of the script, for pages that keep up.
// After `load`: between DOMContentLoaded and `load`, htmx would never begin.
if (document.querySelector('[hx-get]'))
  addEventListener('load', () => void import('./web/fragments'));
