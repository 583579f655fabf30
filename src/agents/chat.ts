import { randomUUIDv7 } from 'node:crypto';
import { createKeyedMutex } from '../concurrency/keyed-mutex.ts';
import { defaultLease, keepLease } from '../concurrency/lease.ts';
import { doWork } from '../concurrency/work.ts';
import { inTransaction } from '../db/transaction.ts';
import { AnnalsError } from '../errors.ts';
import { type AgentRow, findAgent } from './agent-store.ts';
import { type AgentHead, readAgentHead } from './agent-texts.ts';
import { agentNotFound } from './agent-writes.ts';
import { type ChatAttemptOptions, createChatAttempt } from './chat-attempt.ts';
import type { ChatResult } from './chat-outcome.ts';
import { logExpiredChats } from './expired-chats.ts';
import { createFinishChat, type FinishChatOptions } from './finish-chat.ts';
import type { ChatRequest, RunningChat } from './running-chat.ts';
import { extendTurn, takePlace } from './turn-store.ts';

/** Runs one chat to its end and logs it. Rejects with the error for the client. */
export type RunChat = (request: ChatRequest) => Promise<ChatResult>;

export interface Chats {
  run: RunChat;
  /** Throws resource_not_found or conflict_resource where the agent cannot chat. */
  refuseUnavailable(tenant: string, agentId: string): Promise<void>;
  /** Logs the requests whose process died. */
  upkeep(): Promise<void>;
  /** Waits for the running chats. */
  close(): Promise<void>;
}

export interface ChatOptions extends ChatAttemptOptions, FinishChatOptions {}

/** Milliseconds. A process that has not extended its lease is dead. Later requests of the session then continue. */
const lease = defaultLease.length;

export function createChats(options: ChatOptions): Chats {
  const { db, logger, now } = options;
  const attempt = createChatAttempt(options);
  const finish = createFinishChat(options);
  const underWay = new Set<Promise<unknown>>();
  const oneAtATime = createKeyedMutex();

  async function availableAgent(tenant: string, agentId: string): Promise<AgentRow & { head: AgentHead }> {
    const agent = /[\0\p{Surrogate}]/u.test(agentId) ? undefined : await findAgent(db, tenant, agentId);
    if (agent === undefined) throw agentNotFound();
    const head = await readAgentHead(agent.document);
    if (!head.enabled) throw new AnnalsError('conflict_resource', 'The agent is disabled.');
    return { ...agent, head };
  }

  async function run(request: ChatRequest): Promise<ChatResult> {
    const { tenant, agentId, sessionId, requestId, logId = randomUUIDv7() } = request;
    const began = performance.now();
    // One after another, so requests of one session keep their order within this process.
    const { available, position } = await oneAtATime(`${tenant} ${sessionId}`, async () => ({
      available: await availableAgent(tenant, agentId),
      position: await inTransaction(
        db,
        (transaction) => takePlace(transaction, tenant, { sessionId, requestId, logId, agentId, lease }),
        { retries: 3 },
      ),
    }));
    const { head, ...agent } = available;
    const turn = { sessionId, position };
    const tokens = { prompt: 0, completion: 0 };
    const running: RunningChat = { request, logId, agent, head, turn, began, tokens, messages: [] };
    const endLease = keepLease(() => extend(running), {
      onError: (error) => logger.warn({ err: error }, 'a chat could not extend its lease'),
    });
    try {
      const outcome = await attempt(running, () => extend(running));
      await finish(running, outcome);
      if ('conversed' in outcome) {
        const { text: message, fromHistory } = outcome.conversed;
        return { answer: { agentId, agentType: 'generic', sessionId, message }, fromHistory };
      }
      throw outcome.failure?.error ?? outcome.error;
    } finally {
      endLease();
    }
  }

  async function extend({ request, turn, tokens }: RunningChat): Promise<void> {
    await extendTurn(db, request.tenant, turn, { lease, tokens: { ...tokens } });
  }

  return {
    run(request) {
      // The outcome is written even when the client has disconnected. Then only its calls end.
      const running = doWork({ tenant: request.tenant, writes: true }, () => run(request));
      underWay.add(running);
      running.catch(() => {}).finally(() => underWay.delete(running));
      return running;
    },

    async refuseUnavailable(tenant, agentId) {
      await availableAgent(tenant, agentId);
    },

    async upkeep() {
      await logExpiredChats(db, now);
    },

    async close() {
      await Promise.allSettled([...underWay]);
    },
  };
}
