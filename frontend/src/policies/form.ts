/* The form of a policy: what is said of its values is brought up to date as they change, and its buttons
   redraw it without losing the place. Without this file each of them sends the form and loads the page. */

const WAIT = 250;

const form = document.querySelector<HTMLFormElement>('form[data-policy-form]');
if (form) follow(form);

function follow(form: HTMLFormElement): void {
  let timer = 0;
  let latest = 0;
  form.addEventListener('input', (event) => {
    const changed = event.target as HTMLElement;
    if (changed.closest('#yaml-part, .add-step, .note-field')) return;
    clearTimeout(timer);
    timer = window.setTimeout(() => void check(), WAIT);
  });
  // What was refused is shown again, and saved nowhere.
  const begun = form.dataset.unsaved === undefined ? written() : '';
  let leaving = false;
  window.addEventListener('beforeunload', (event) => {
    if (!leaving && written() !== begun) event.preventDefault();
  });
  form.addEventListener('keydown', (event) => {
    const isNote = (event.target as HTMLElement).id === 'note' && !event.isComposing;
    if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey || isNote)) return;
    event.preventDefault();
    form.requestSubmit(form.querySelector<HTMLButtonElement>('.save-bar button[value="save"]'));
  });
  form.addEventListener('submit', (event) => {
    const act = (event.submitter as HTMLButtonElement | null)?.value ?? 'check';
    clearTimeout(timer);
    if (act === 'save') {
      leaving = true;
      return;
    }
    event.preventDefault();
    void redraw(act);
  });

  /** What is entered, to see whether leaving loses anything. */
  function written(): string {
    const entered = new FormData(form);
    for (const own of ['yaml_shown', 'strategy', 'csrfmiddlewaretoken', 'seen'])
      entered.delete(own);
    return JSON.stringify([...entered].map(([name, value]) => [name, String(value)]));
  }

  async function ask(act: string, without = ''): Promise<Document | null> {
    const mine = ++latest;
    const body = new FormData(form);
    if (without) body.delete(without);
    body.set('do', act);
    form.dataset.asking = '';
    try {
      const answer = await fetch(form.action, {
        method: 'POST',
        body,
        headers: { accept: 'text/html' },
      });
      if (!answer.ok || mine !== latest) return null;
      return new DOMParser().parseFromString(await answer.text(), 'text/html');
    } catch {
      return null;
    } finally {
      if (mine === latest) delete form.dataset.asking;
    }
  }

  /** Only what is said of values: the input itself stays as typed. */
  async function check(): Promise<void> {
    const fresh = await ask('check', 'file');
    if (!fresh) return;
    for (const remarks of form.querySelectorAll<HTMLElement>(
      '.field-remarks, .from, .was, .live',
    )) {
      const news = fresh.getElementById(remarks.id);
      if (news && !news.isEqualNode(remarks)) remarks.replaceChildren(...news.childNodes);
    }
    for (const field of form.querySelectorAll<HTMLElement>('.setting-row, #name-field')) {
      const wrong = fresh.getElementById(field.id)?.classList.contains('wrong') ?? false;
      field.classList.toggle('wrong', wrong);
      const changed = fresh.getElementById(field.id)?.classList.contains('changed') ?? false;
      field.classList.toggle('changed', changed);
      for (const input of field.querySelectorAll('input, textarea')) {
        if (wrong) input.setAttribute('aria-invalid', 'true');
        else input.removeAttribute('aria-invalid');
      }
    }
    const yaml = fresh.querySelector<HTMLTextAreaElement>('#yaml');
    const mine = form.querySelector<HTMLTextAreaElement>('#yaml');
    const shown = fresh.querySelector<HTMLInputElement>('#yaml-shown');
    const marked = form.querySelector<HTMLInputElement>('#yaml-shown');
    if (!yaml || !mine || !shown || !marked || mine.value !== mine.defaultValue) return;
    mine.value = mine.defaultValue = yaml.value;
    marked.value = shown.value;
  }

  async function redraw(act: string): Promise<void> {
    const fresh = (await ask(act))?.getElementById(form.id);
    if (!fresh) return;
    const known = new Set([...form.querySelectorAll('.step-row')].map((one) => one.id));
    const stood = document.activeElement?.id ?? '';
    form.replaceChildren(...fresh.childNodes);
    if (act === 'check') focusRemark(stood);
    else focus(act, known);
  }

  /** The first thing that is wrong or remarked upon; where there is none, the field that had the focus. */
  function focusRemark(stood: string): void {
    const first = form.querySelector<HTMLElement>('[aria-invalid="true"], .remark');
    if (first?.matches('.remark')) first.tabIndex = -1;
    const here = stood ? form.querySelector<HTMLElement>(`#${CSS.escape(stood)}`) : null;
    if (first) first.focus();
    else
      (here ?? form.querySelector<HTMLElement>('.save-bar button[value="check"]'))?.focus({
        preventScroll: true,
      });
  }

  /** The button that was pressed, where its step went; or the step that came. */
  function focus(act: string, known: Set<string>): void {
    const [verb, place] = act.split(':');
    const to = Number(place) + (verb === 'up' ? -1 : verb === 'down' ? 1 : 0);
    const button = form.querySelector<HTMLElement>(`button[value="${verb}:${to}"]:not([disabled])`);
    const came = [...form.querySelectorAll<HTMLElement>('.step-row')].find(
      (one) => !known.has(one.id),
    );
    const next =
      (came &&
        form.querySelector<HTMLElement>(`[id^="${came.id}-parameters-"]:is(input, select)`)) ??
      button;
    (
      next ?? form.querySelector<HTMLElement>(act === 'read' ? '#yaml-part > summary' : '#strategy')
    )?.focus();
  }
}
