import { expect, it } from 'vitest';
import { isForPage, isSearch, isSend, nameOf, type Pressed } from '../../src/web/keyboard/guards';

/** A key pressed while an element that matches `inside` has the focus. */
function pressed(key: string, more: Partial<Pressed> = {}, inside = ''): Pressed {
  const target = {
    closest: (selector: string) =>
      inside &&
      selector
        .split(',')
        .some(
          (one) => one === inside || one.startsWith(`${inside}:`) || one.startsWith(`${inside}[`),
        )
        ? {}
        : null,
  };
  return {
    key,
    shiftKey: false,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    isComposing: false,
    defaultPrevented: false,
    target,
    ...more,
  };
}

it('takes bare keys', () => expect(isForPage(pressed('j'), false)).toBe(true));

it('leaves chords, composing, dialogs and typing alone', () => {
  for (const event of [
    pressed('c', { ctrlKey: true }),
    pressed('c', { metaKey: true }),
    pressed('ArrowLeft', { altKey: true }),
    pressed('j', { isComposing: true }),
    pressed('j', { defaultPrevented: true }),
    pressed('j', {}, 'textarea'),
    pressed('j', {}, 'select'),
    pressed('j', {}, 'input'),
  ]) {
    expect(isForPage(event, false)).toBe(false);
  }
  expect(isForPage(pressed('j'), true)).toBe(false);
});

it('knows that AltGr is no modifier', () => {
  expect(
    isForPage(
      pressed('[', {
        ctrlKey: true,
        altKey: true,
        getModifierState: (name) => name === 'AltGraph',
      }),
      false,
    ),
  ).toBe(true);
});

it('leaves Space and Enter to a focused button', () => {
  expect(isForPage(pressed(' ', {}, 'button'), false)).toBe(false);
  expect(isForPage(pressed('j', {}, 'button'), false)).toBe(true);
});

it('names keys', () => {
  expect([
    nameOf({ key: 'J', shiftKey: true }),
    nameOf({ key: 'ArrowLeft', shiftKey: true }),
    nameOf({ key: '?', shiftKey: true }),
    nameOf({ key: ' ', shiftKey: false }),
    nameOf({ key: 'j', shiftKey: false }),
  ]).toEqual(['Shift+j', 'Shift+ArrowLeft', '?', 'Space', 'j']);
});

it('takes Ctrl or ⌘ with Enter for the main button, wherever one types', () => {
  const press = (more: Partial<Pressed>) =>
    isSend({
      key: 'Enter',
      shiftKey: false,
      ctrlKey: false,
      metaKey: false,
      altKey: false,
      isComposing: false,
      defaultPrevented: false,
      target: null,
      ...more,
    });
  expect([press({ ctrlKey: true }), press({ metaKey: true })]).toEqual([true, true]);
  expect([
    press({}),
    press({ ctrlKey: true, shiftKey: true }),
    press({ ctrlKey: true, isComposing: true }),
    press({ ctrlKey: true, key: 'x' }),
  ]).toEqual([false, false, false, false]);
});

it('⌘K or Ctrl+K searches, also while someone types', () => {
  const k = (more: Partial<Pressed>) => isSearch(pressed('k', more, 'input'));
  expect([k({ ctrlKey: true }), k({ metaKey: true })]).toEqual([true, true]);
  expect([k({}), k({ ctrlKey: true, shiftKey: true }), k({ ctrlKey: true, altKey: true })]).toEqual(
    [false, false, false],
  );
});
