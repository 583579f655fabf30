import { answerRequests } from '../../../src/core/fairness/thread.ts';
import { nestedLists } from './nested-lists.ts';

/** A worker for tests of threads: it answers with lists of so many levels. */
answerRequests(({ levels }: { levels: number; sent?: unknown }) => nestedLists(levels));
