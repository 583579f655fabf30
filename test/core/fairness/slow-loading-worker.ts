import { setTimeout as sleep } from 'node:timers/promises';
import { answerRequests } from '../../../src/core/fairness/thread.ts';

/** A worker for tests of threads: it answers with the id, after it has loaded for so many milliseconds. */
answerRequests(
  ({ id }: { id: number; loading: number }) => id,
  ({ loading }) => sleep(loading),
);
