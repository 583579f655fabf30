import type { RequestLog } from '@annals/client';
import { LogLines } from './log-lines.tsx';

/** Of a request's log, what belongs beside its answer: what the agent asked its tools, and what went wrong. */
export function TurnLog({ log }: { readonly log: RequestLog }) {
  const told = log.messages.filter(({ severity, guarded }) => severity !== 'INFO' || guarded === true);
  return told.length === 0 ? null : <LogLines messages={told} />;
}
