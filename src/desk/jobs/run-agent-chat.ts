import { AnnalsError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import type { QueuedChat, RunQueuedChat } from '../queued-chat.ts';
import { answeredDocument } from './job.ts';
import { abandonJob, JobLost, noteCall, type TakenJob, updateJob } from './job-store.ts';

/**
 * Runs a chat at most once. If a process dies after its call may have been sent, no other process repeats it (contract
 * 8), because the vendor may have answered and charged it.
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
    if (!(await noteCall(db, job))) abandonJob(stop);
  };
  const answered = await runChat(chat, { signal: stop.signal, callBegins });
  if (!(await updateJob(db, job, answeredDocument(job.document, now(), answered)))) throw new JobLost();
}
