import { AnnalsError } from '../errors.ts';
import { answerRequests } from './thread.ts';
import { callInThread, type ThreadCall, type ThreadOutcome } from './threads.ts';

answerRequests(
  async (call: ThreadCall): Promise<ThreadOutcome> => {
    try {
      return { result: await callInThread(call) };
    } catch (error) {
      if (!(error instanceof AnnalsError)) return { error };
      const { type, message, details, headers } = error;
      return { refusal: { type, message, details, headers } };
    }
  },
  // `callInThread` reports a module that cannot be loaded.
  ({ module }) => import(module).catch(() => {}),
);
