import { AnnalsError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import type { QueuedChat, RunQueuedChat } from '../queued-chat.ts';
import { answeredDocument } from './job.ts';
import { JobLost, loseJob, noteCall, type TakenJob, updateJob } from './job-store.ts';

/**
 * Runs a chat at most once. If a process dies after its call may have left, no other process sends the chat again
 * (contract 8). Nobody knows whether the vendor has answered and charged it.
 */
export async function runAgentChat(
  { db, runChat, now }: { db: Database; runChat: RunQueuedChat; now: () => number },
  job: TakenJob,
  stop: AbortController,
): Promise<void> {
  if (job.callBegan) {
    throw new AnnalsError(
      'provider_error',
      'The service stopped during the call of the agent, and did not repeat the call.',
    );
  }
  const chat: QueuedChat = JSON.parse(job.input);
  const callBegins = async () => {
    if (!(await noteCall(db, job))) loseJob(stop);
  };
  const answered = await runChat(chat, { signal: stop.signal, callBegins });
  if (!(await updateJob(db, job, answeredDocument(job.document, now(), answered)))) throw new JobLost();
}
