import { AnnalsError } from '../errors.ts';
import { answerRequests } from './thread-worker.ts';
import { callInThread, type ThreadedCall, type ThreadedOutcome } from './threaded.ts';

answerRequests(async (call: ThreadedCall): Promise<ThreadedOutcome> => {
  try {
    return { result: await callInThread(call) };
  } catch (error) {
    if (!(error instanceof AnnalsError)) return { error };
    const { type, message, details, headers } = error;
    return { refusal: { type, message, details, headers } };
  }
});
