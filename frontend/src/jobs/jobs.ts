/* A job's page, read out: at most every ten seconds, since a bar that moves would never be silent. */

const every = 10_000;
const job = document.querySelector<HTMLElement>('#job, #report');

if (job?.dataset.topic) {
  const voice = document.createElement('div');
  voice.className = 'seen-by-ear';
  voice.setAttribute('role', 'status');
  job.after(voice);
  const say = () => {
    const state = job.querySelector('.badge')?.textContent ?? '';
    const done = job.querySelector('progress')?.getAttribute('aria-valuetext') ?? '';
    voice.textContent = [state, done].filter(Boolean).join(', ');
    if (job.dataset.topic === undefined) clearInterval(timer);
  };
  const timer = setInterval(say, every);
}
