import type { Job, RequestLog } from '@annals/client';
import type { Conversation } from '../chat/turns.tsx';

/** A request of a session, with its texts if they are known. */
export interface SessionTurn {
  readonly log: RequestLog;
  readonly message: string | undefined;
  readonly answer: string | undefined;
}

/** Joins the requests of a session with their texts. Logs have none; jobs keep theirs, the tab those of its chats. */
export function turnsOf(
  logs: readonly RequestLog[],
  { jobs, conversation }: { readonly jobs: readonly Job[]; readonly conversation: Conversation | undefined },
): SessionTurn[] {
  const byRequest = new Map<string, { message: string | undefined; answer: string | undefined }>();
  for (const { requestId, request, message } of jobs) {
    if (requestId !== undefined) byRequest.set(requestId, { message: request, answer: message });
  }
  for (const { requestId, message, answer } of conversation?.turns ?? []) {
    if (requestId !== undefined) byRequest.set(requestId, { message, answer });
  }
  return logs.map((log) => ({ message: undefined, answer: undefined, ...byRequest.get(log.requestId), log }));
}
