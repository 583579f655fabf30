import type { AnnalsError } from '../errors.ts';
import type { ChatAnswer, Chats } from './chat.ts';
import type { QueuedChat } from './ports.ts';

/** How a chat that ran by itself ended: with an answer, or without having been tried. Failures are thrown. */
export type QueuedOutcome =
  | { status: 'success'; response: ChatAnswer[]; fromHistory: boolean }
  | { status: 'skipped'; response: { message: string }; fromHistory: false };

/** Runs a queued chat; `callBegins` is awaited before its first call leaves. */
export async function runQueuedChat(
  chats: Chats,
  chat: QueuedChat,
  { signal, callBegins }: { signal: AbortSignal; callBegins(): Promise<void> },
): Promise<QueuedOutcome> {
  const unavailable = await chats.refuseUnavailable(chat.tenant, chat.agentId).then(
    () => undefined,
    (error: AnnalsError) => error,
  );
  // Nobody has asked it yet, and a repeat would come to the same.
  if (unavailable?.type === 'conflict_resource' || unavailable?.type === 'resource_not_found') {
    return { status: 'skipped', response: { message: unavailable.message }, fromHistory: false };
  }
  const { answer, fromHistory } = await chats.run({ ...chat, signal, beforeCall: callBegins });
  return { status: 'success', response: [answer], fromHistory };
}
