import { shared } from './shared.ts';

/** Emits a process warning the first time that it is called with `code`. The text never contains values of the application. */
export function warnOnce(code: string, text: string): void {
  if (shared.warned.has(code)) return;
  shared.warned.add(code);
  process.emitWarning(text, { type: 'AnnalsWarning', code: `ANNALS_${code}` });
}
