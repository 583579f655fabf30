import type { Job } from '@annals/client';

type Tone = 'plain' | 'good' | 'busy' | 'bad';

const states: Readonly<Record<Job['status'], { readonly tone: Tone; readonly word: string }>> = {
  in_progress: { tone: 'busy', word: 'under way' },
  success: { tone: 'good', word: 'done' },
  failure: { tone: 'bad', word: 'failed' },
  skipped: { tone: 'plain', word: 'skipped' },
};

/** A job's state as a word and a tone. */
export function stateOf({ status }: Pick<Job, 'status'>): { readonly tone: Tone; readonly word: string } {
  return states[status];
}

/** What a job does. */
export function kindOf({ type }: Pick<Job, 'type'>): string {
  return type === 'EXPORT' ? 'Export' : 'Chat';
}
