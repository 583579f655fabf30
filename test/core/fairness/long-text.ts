import { threadId } from 'node:worker_threads';
import { AnnalsError } from '../../../src/core/errors.ts';
import { threaded } from '../../../src/core/fairness/threads.ts';

/** For the tests of `threaded`: where it ran, how long the text is, and errors on demand. */
export const measured = threaded(
  import.meta.url,
  'measured',
  (text: string, { fault }: { fault?: 'refusal' | 'error' }) => {
    if (fault === 'refusal') {
      throw new AnnalsError('conflict_resource', 'no', {
        details: [{ field: 'a', message: 'b' }],
        headers: { a: 'b' },
      });
    }
    if (fault === 'error') throw new Error('broken');
    return { length: text.length, threadId };
  },
  (text, _options) => text.startsWith('grows'),
);
