import { AnnalsError } from '../../core/errors.ts';
import { mayReadHistory, type Scope } from '../../http/scopes.ts';
import type { AnsweredChat, QueuedChat } from '../queued-chat.ts';
import type { Chats } from './chat.ts';
import type { ScopesNow } from './ports.ts';

/**
 * Runs a queued chat, awaiting `callBegins` before the first call. Permissions can change while the chat waits in the
 * queue or for its session, so before each call it throws an AnnalsError unless client and agent may still chat.
 */
export async function runQueuedChat(
  { chats, scopesNow }: { chats: Chats; scopesNow: ScopesNow },
  chat: QueuedChat,
  { signal, callBegins }: { signal: AbortSignal; callBegins(): Promise<void> },
): Promise<AnsweredChat> {
  const { tenant, agentId } = chat;
  const scopes = await mayBegin();

  async function mayBegin(): Promise<readonly Scope[]> {
    try {
      const left = await scopesLeft(scopesNow, chat);
      await chats.refuseUnavailable(tenant, agentId);
      return left;
    } catch (error) {
      if (error instanceof AnnalsError) await chats.refuse(chat, error);
      throw error;
    }
  }

  async function beforeCall(round: number): Promise<void> {
    const left = await scopesLeft(scopesNow, chat);
    if (mayReadHistory(scopes) && !mayReadHistory(left)) throw mayNot('read the change history');
    await chats.refuseUnavailable(tenant, agentId);
    if (round === 0) await callBegins();
  }

  const credentials = { ...chat.credentials, scopes };
  const { answer, fromHistory } = await chats.run({ ...chat, credentials, signal, beforeCall });
  return { message: answer.message, response: [answer], fromHistory };
}

/** The scopes that the client had when it queued the chat and still has. */
async function scopesLeft(scopesNow: ScopesNow, { tenant, credentials }: QueuedChat): Promise<readonly Scope[]> {
  const now = await scopesNow(tenant, credentials.clientId);
  if (now === undefined) {
    throw new AnnalsError('insufficient_permissions', 'The client of this chat has been revoked.');
  }
  const left = credentials.scopes.filter((scope) => now.includes(scope));
  if (!left.includes('ai.agentexecution_manage')) throw mayNot('chat with agents');
  return left;
}

function mayNot(what: string): AnnalsError {
  return new AnnalsError('insufficient_permissions', `The client of this chat may not ${what} any more.`);
}
