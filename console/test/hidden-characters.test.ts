import { expect, test } from 'vitest';
import { splitHidden } from '../src/components/text.tsx';

const shown = (text: string, options?: { lines: boolean }) =>
  splitHidden(text, options)
    .map((part) => (part.hidden ? `[${part.sign}]` : part.text))
    .join('');

test('characters that turn the text around, or that nobody sees, are shown as their code', () => {
  expect(shown('user\u202etxt.exe')).toBe('user[U+202E]txt.exe');
  expect(shown('a\u200bb\u2066c\u2069')).toBe('a[U+200B]b[U+2066]c[U+2069]');
  expect(shown('\u0000\u001b[31m')).toBe('[U+0000][U+001B][31m');
  expect(shown('\ud800')).toBe('[U+D800]');
  expect(shown('tag\u{e0041}')).toBe('tag[U+E0041]');
});

test('line ends and tabs are signs in a name, and themselves in a long text', () => {
  expect(shown('a\nb\tc')).toBe('a[↵]b[⇥]c');
  expect(shown('a\nb\tc\r', { lines: true })).toBe('a\nb\tc[␍]');
});

test('letters of any script and joined pictures stay as they are', () => {
  for (const text of ['Zoë Ångström', 'שלום', '日本語', '👩‍🚀 flew', '']) expect(shown(text)).toBe(text);
  expect(shown('a\u200db')).toBe('a[U+200D]b');
});
