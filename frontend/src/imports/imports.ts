/* The upload form: files can be dropped on it, limits are checked before anything is sent, and the
   transfer shows how far it is. Without a script it is a plain form. */

const megabytes = (bytes: number) =>
  `${(bytes / 1048576).toFixed(bytes < 10 * 1048576 ? 1 : 0)} MB`;

function problemWith(files: FileList | null, form: HTMLFormElement): string {
  const all = [...(files ?? [])];
  const most = Number(form.dataset.most);
  const limit = Number(form.dataset.limit);
  const bytes = all.reduce((sum, file) => sum + file.size, 0);
  if (all.length > most)
    return `${all.length} files are too many: ${most} in one go. Send them in several goes, or use the command.`;
  // The form around the files counts too.
  if (bytes + 1024 * all.length + 4096 > limit) {
    const sizes = `Together they have ${megabytes(bytes)}, and ${megabytes(limit)} is the limit of one upload.`;
    return `${sizes} Send fewer at once, or use the command, which takes larger files.`;
  }
  return '';
}

/** What a refusal says: a problem as JSON, or else the state of the connection. */
function reason(request: XMLHttpRequest): string {
  try {
    const problem = JSON.parse(request.responseText) as { title: string; detail: string };
    return `${problem.title}. ${problem.detail}`;
  } catch {
    return request.status
      ? `The server answered ${request.status}. Nothing was imported.`
      : 'The connection broke. Nothing was imported; try again.';
  }
}

for (const form of document.querySelectorAll<HTMLFormElement>('form[data-upload]')) {
  const field = form.querySelector<HTMLInputElement>('input[type="file"]')!;
  const button = form.querySelector<HTMLButtonElement>('button')!;
  const complaint = form.querySelector<HTMLElement>('[data-upload-problem]')!;
  const meter = form.querySelector<HTMLElement>('[data-upload-progress]')!;
  const bar = meter.querySelector('progress')!;
  form.querySelector<HTMLElement>('[data-drop-hint]')!.hidden = false;

  const complain = (sentence: string) => {
    complaint.textContent = sentence;
    complaint.hidden = !sentence;
    field.toggleAttribute('aria-invalid', Boolean(sentence));
  };

  field.addEventListener('change', () => complain(problemWith(field.files, form)));

  const hold = (event: DragEvent) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    form.toggleAttribute('data-over', event.type !== 'dragleave' && event.type !== 'drop');
  };
  for (const name of ['dragenter', 'dragover', 'dragleave', 'drop'] as const)
    form.addEventListener(name, hold);
  form.addEventListener('drop', (event) => {
    if (!event.dataTransfer?.files.length) return;
    field.files = event.dataTransfer.files;
    field.dispatchEvent(new Event('change'));
  });

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const problem = problemWith(field.files, form);
    complain(problem);
    if (problem) return;
    send();
  });

  // XMLHttpRequest, since fetch does not tell how much of a body has been sent.
  function send(): void {
    const request = new XMLHttpRequest();
    request.open('POST', form.action);
    request.upload.onprogress = ({ loaded, total }) => {
      bar.value = total ? (100 * loaded) / total : 0;
      meter.querySelector('span')!.textContent = `${megabytes(loaded)} of ${megabytes(total)}`;
    };
    request.onload = () => {
      // The answer to an upload leads to its report, whose page the request has followed to.
      if (request.status < 400) location.assign(request.responseURL);
      else stop(reason(request));
    };
    request.onerror = () => stop(reason(request));
    button.disabled = true;
    meter.hidden = false;
    request.send(new FormData(form));
  }

  function stop(sentence: string): void {
    button.disabled = false;
    meter.hidden = true;
    complain(sentence);
  }
}
