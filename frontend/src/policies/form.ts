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
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.isComposing || (event.target as HTMLElement).id !== 'note')
      return;
    event.preventDefault();
    form.requestSubmit(form.querySelector<HTMLButtonElement>('.save-bar button[value="save"]'));
  });
  form.addEventListener('submit', (event) => {
    const act = (event.submitter as HTMLButtonElement | null)?.value ?? 'check';
    clearTimeout(timer);
    if (act === 'save') return;
    event.preventDefault();
    void redraw(act);
  });

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
      '.field-remarks, .from, #form-remarks',
    )) {
      const news = fresh.getElementById(remarks.id);
      if (news && !news.isEqualNode(remarks)) remarks.replaceChildren(...news.childNodes);
    }
    for (const field of form.querySelectorAll<HTMLElement>('.value-field, #name-field')) {
      const wrong = fresh.getElementById(field.id)?.classList.contains('wrong') ?? false;
      field.classList.toggle('wrong', wrong);
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
    const known = new Set([...form.querySelectorAll('fieldset')].map((one) => one.id));
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
    const came = [...form.querySelectorAll<HTMLElement>('fieldset')].find(
      (one) => !known.has(one.id),
    );
    const next =
      came?.querySelector<HTMLElement>('input:not([type="hidden"]), textarea, select') ?? button;
    (
      next ?? form.querySelector<HTMLElement>(act === 'read' ? '#yaml-part > summary' : '#strategy')
    )?.focus();
  }
}
