import type { HistoryLog } from '@annals/client';
import { counted } from '../components/numbers.ts';

type Receipt = HistoryLog['receipts'][number];

const words: Readonly<Record<string, (changes: string) => string>> = {
  erasure: (changes) => `A person or a document was erased from ${changes}`,
  retention: (changes) => `Retention dropped ${changes}`,
  hold: () => 'The history was put on hold',
  release: () => 'The hold was released',
  'first sealing': (changes) => `The history was sealed for the first time, with ${changes} as they stood`,
  'new key': () => 'The log goes on with a new key',
  restore: () => 'The database was set back, or its key lost what it had signed: a new log goes on from it',
};

/** What a receipt says, as a sentence without its end. */
export function receiptText({ what, changes, reason }: Receipt): string {
  const text = words[what]?.(counted(changes, 'change')) ?? what;
  return reason === undefined ? text : `${text} (${reason})`;
}

const steps = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** How long ago a moment was, both in milliseconds: `2 minutes ago`. */
export function sinceText(at: number, now: number): string {
  for (const [unit, length] of steps) {
    const count = Math.floor((now - at) / length);
    if (count > 0) return `${counted(count, unit)} ago`;
  }
  return 'less than a minute ago';
}
