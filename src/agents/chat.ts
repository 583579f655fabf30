import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKeyedMutex } from '../concurrency/keyed-mutex.ts';
import { defaultLease, keepLease } from '../concurrency/lease.ts';
import { inTransaction } from '../db/transaction.ts';
import { AnnalsError } from '../errors.ts';
import { mayReadHistory } from '../http/scopes.ts';
import { ProviderError } from '../providers/port.ts';
import type { Sealer } from '../sealing.ts';
import { type AgentDocument, parseAgent } from './agent-document.ts';
import { type AgentRow, findAgent } from './agent-store.ts';
import { agentNotFound } from './agent-writes.ts';
import { failureOfChat, keyUnreadable } from './chat-failure.ts';
import type { ChatOutcome, ChatResult } from './chat-outcome.ts';
import { type ConverseOptions, converse } from './conversation.ts';
import { logExpiredChats } from './expired-chats.ts';
import { createFinishChat, type FinishChatOptions } from './finish-chat.ts';
import type { Target } from './model-caller.ts';
import { noteOf, type Severity } from './request-log.ts';
import type { ChatRequest, RunningChat } from './running-chat.ts';
import { changeHistoryTool } from './schemas.ts';
import { openKey } from './secrets.ts';
import { extendTurn, hasEarlierRunning, readEarlierTurns, takePlace } from './turn-store.ts';

/** Runs one chat to its end and logs it; rejects with what the client is told. */
export type RunChat = (request: ChatRequest) => Promise<ChatResult>;

export interface Chats {
  run: RunChat;
  /** Throws resource_not_found or conflict_resource where the agent cannot chat. */
  refuseUnavailable(tenant: string, agentId: string): Promise<void>;
  /** Logs the requests that dead processes left. */
  upkeep(): Promise<void>;
  /** Waits for chats under way. */
  close(): Promise<void>;
}

export interface ChatOptions extends ConverseOptions, FinishChatOptions {
  sealer: Sealer;
}

// Milliseconds. A process that has not extended its lease is dead, and later requests of the session go on.
const lease = defaultLease.length;
const maxWait = 300_000;
const minPause = 15;
const maxPause = 150;

export function createChats(options: ChatOptions): Chats {
  const { db, sealer, logger, now } = options;
  const finish = createFinishChat(options);
  const underWay = new Set<Promise<unknown>>();
  const oneAtATime = createKeyedMutex();

  async function availableAgent(tenant: string, agentId: string): Promise<AgentRow & { parsed: AgentDocument }> {
    const agent = /[\0\p{Surrogate}]/u.test(agentId) ? undefined : await findAgent(db, tenant, agentId);
    if (agent === undefined) throw agentNotFound();
    const parsed = parseAgent(agent.document);
    if (!parsed.enabled) throw new AnnalsError('conflict_resource', 'The agent is disabled.');
    return { ...agent, parsed };
  }

  async function run(request: ChatRequest): Promise<ChatResult> {
    const { tenant, agentId, sessionId, requestId, logId = randomUUIDv7() } = request;
    const began = performance.now();
    // One after another, so that requests of a session that come to one process do not overtake each other here.
    const { available, position } = await oneAtATime(`${tenant} ${sessionId}`, async () => ({
      available: await availableAgent(tenant, agentId),
      position: await inTransaction(
        db,
        (transaction) => takePlace(transaction, tenant, { sessionId, requestId, logId, agentId, lease }),
        { retries: 3 },
      ),
    }));
    const { parsed, ...agent } = available;
    const turn = { sessionId, position };
    const tokens = { prompt: 0, completion: 0 };
    const running: RunningChat = { request, logId, agent, document: parsed, turn, began, tokens, messages: [] };
    const endLease = keepLease(() => extend(running), {
      onError: (error) => logger.warn({ err: error }, 'a chat could not extend its lease'),
    });
    try {
      const outcome = await outcomeOf(running);
      await finish(running, outcome);
      if ('conversed' in outcome) {
        const { text: message, fromHistory } = outcome.conversed;
        return { answer: { agentId, agentType: 'custom', sessionId, message }, fromHistory };
      }
      throw outcome.failure?.error ?? outcome.error;
    } finally {
      endLease();
    }
  }

  async function extend({ request, turn, tokens }: RunningChat): Promise<void> {
    await extendTurn(db, request.tenant, turn, { lease, tokens: { ...tokens } });
  }

  async function outcomeOf(running: RunningChat): Promise<ChatOutcome> {
    const { request, document } = running;
    try {
      await waitForTurn(running);
      const target = targetOf(running);
      if (target === undefined) return { failure: keyUnreadable(), error: undefined };
      return { conversed: await converse(options, conversationOf(running, target)) };
    } catch (error) {
      if (request.signal?.aborted === true) {
        return { failure: undefined, error: request.signal.reason, givenUp: true };
      }
      if (error instanceof ProviderError) {
        return { failure: failureOfChat(error, document.llmConfig.provider), error };
      }
      return { failure: error instanceof AnnalsError ? { error, isConfiguration: false } : undefined, error };
    }
  }

  /** Requests of one session are answered in the order they came (contract 8), in whatever process. */
  async function waitForTurn({ request: { tenant, signal }, turn }: RunningChat): Promise<void> {
    const end = performance.now() + maxWait;
    for (let pause = minPause; await hasEarlierRunning(db, tenant, turn); ) {
      if (performance.now() > end) {
        throw new AnnalsError('service_unavailable', 'Earlier requests of the session are still under way.', {
          headers: { 'Retry-After': '5' },
        });
      }
      await sleep(pause, undefined, { signal });
      pause = Math.min(maxPause, pause * 1.5);
    }
    signal?.throwIfAborted();
  }

  function targetOf({ request: { tenant }, agent, document: { id, llmConfig } }: RunningChat): Target | undefined {
    if (agent.sealedKey === null) return { tenant, llmConfig, apiKey: '' };
    const apiKey = openKey(sealer, tenant, id, agent.sealedKey);
    if (apiKey === undefined) logger.error({ tenant, agentId: id }, 'no secret key opens the key of this agent');
    return apiKey === undefined ? undefined : { tenant, llmConfig, apiKey };
  }

  function conversationOf(running: RunningChat, target: Target) {
    const { request, document, turn, tokens, messages } = running;
    const { tenant, agentId, requestId, credentials, message, signal, onText } = request;
    const withHistory = mayReadHistory(credentials.scopes);
    return {
      target,
      message,
      signal,
      onText,
      userPrompt: document.userPrompt,
      offersHistory: withHistory && document.nativeTools.includes(changeHistoryTool),
      earlier: (maxBytes: number) => readEarlierTurns(db, tenant, turn, { maxBytes, withHistory }),
      async beforeCall(round: number) {
        if (round > 0) await extend(running);
        await request.beforeCall?.(round);
        signal?.throwIfAborted();
      },
      report({
        inputTokens = 0,
        outputTokens = 0,
      }: {
        inputTokens?: number | undefined;
        outputTokens?: number | undefined;
      }) {
        tokens.prompt += inputTokens;
        tokens.completion += outputTokens;
      },
      note: (severity: Severity, text: string, { guarded }: { guarded?: boolean } = {}) =>
        void messages.push(noteOf({ severity, text, agentId, requestId, at: now(), guarded })),
    };
  }

  return {
    run(request) {
      const running = run(request);
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
