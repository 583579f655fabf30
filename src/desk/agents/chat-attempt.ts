import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { mayReadHistory } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { ProviderError } from '../../providers/port.ts';
import { type ChatTools, openChatTools } from '../mcp/chat-tools.ts';
import { openHeaders } from '../mcp/headers.ts';
import { hasTools, withStates } from '../mcp/servers.ts';
import type { OpenToolServer } from '../mcp/tool-server.ts';
import { offersHistoryTool } from './agent-document.ts';
import { failureOfChat, keyUnreadable } from './chat-failure.ts';
import { type Conversation, type ConverseOptions, converse } from './conversation.ts';
import type { Target } from './model-caller.ts';
import { markTools } from './read-tools.ts';
import { noteOf } from './request-log.ts';
import type { ChatOutcome, RunningChat } from './running-chat.ts';
import { openKey } from './secrets.ts';
import { hasEarlierRunning, readEarlierTurns } from './turn-store.ts';

export interface ChatAttemptOptions extends ConverseOptions {
  db: Database;
  sealer: Sealer;
  logger: FastifyBaseLogger;
  openToolServer: OpenToolServer;
  /** Throws if the agent cannot chat. */
  availableAgent(tenant: string, agentId: string): Promise<RunningChat['agent']>;
}

/** Waits for earlier requests of the session, then runs the conversation. Returns the outcome; never throws. */
export type ChatAttempt = (running: RunningChat, extend: () => Promise<void>) => Promise<ChatOutcome>;

export function createChatAttempt(options: ChatAttemptOptions): ChatAttempt {
  const { db, sealer, logger, now, openToolServer, availableAgent } = options;

  /** Requests of one session run in order of arrival (contract 8), across all processes. */
  async function waitForTurn(running: RunningChat): Promise<void> {
    const { request, turn } = running;
    const { tenant, agentId, signal } = request;
    const waited = await waitForTurnInSession(() => hasEarlierRunning(db, tenant, turn), signal);
    // While it waited, the agent may have been changed, disabled or deleted.
    if (waited) running.agent = await availableAgent(tenant, agentId);
  }

  function targetOf({ request: { tenant, credentials }, agent }: RunningChat): Target | undefined {
    const { id, llmConfig } = agent.head;
    const target = { tenant, clientId: credentials.clientId, agentId: id, llmConfig };
    if (agent.sealedKey === null) return { ...target, apiKey: '' };
    const apiKey = openKey(sealer, tenant, id, agent.sealedKey);
    if (apiKey === undefined) logger.error({ tenant, agentId: id }, 'no secret key opens the key of this agent');
    return apiKey === undefined ? undefined : { ...target, apiKey };
  }

  /** Undefined for an agent without MCP tools. */
  async function remoteTools({ request, agent }: RunningChat): Promise<ChatTools | undefined> {
    const { tenant, signal } = request;
    const { id, mcpServers = [] } = agent.head;
    if (!hasTools(mcpServers)) return undefined;
    const headers = openHeaders(sealer, tenant, id, agent.sealedHeaders);
    if (headers === undefined) logger.error({ tenant, agentId: id }, 'no secret key opens the headers of this agent');
    const remote = await openChatTools(mcpServers, { open: openToolServer, headers, signal });
    const { compared } = remote;
    if (withStates(mcpServers, compared) !== undefined) {
      await inTransaction(db, (transaction) => markTools(transaction, tenant, { id, compared, at: now() }), {
        retries: 3,
      });
    }
    return remote;
  }

  function conversationOf(
    running: RunningChat,
    { target, remote }: { target: Target; remote: ChatTools | undefined },
    extend: () => Promise<void>,
  ): Conversation {
    const { request, turn, tokens, messages } = running;
    const { head } = running.agent;
    const { tenant, agentId, requestId, credentials, caller, message, signal, onText } = request;
    const mayRead = mayReadHistory(credentials.scopes);
    const withHistory = mayRead && (remote === undefined || head.allowHistoryWithTools === true);
    return {
      target,
      message,
      signal,
      onText,
      userPrompt: head.userPrompt,
      remote,
      whyWithheld: mayRead ? 'which this agent may not take to other servers' : 'which this client may not read',
      reader: { ...credentials, caller },
      offersHistory: withHistory && offersHistoryTool(head.nativeTools),
      earlier: (maxBytes: number) => readEarlierTurns(db, tenant, turn, { maxBytes, withHistory }),
      async beforeCall(round: number) {
        if (round > 0) await extend();
        await request.beforeCall?.(round);
        signal?.throwIfAborted();
        running.hasCalled = true;
      },
      report({ inputTokens = 0, outputTokens = 0, charged = { input: inputTokens, output: outputTokens } }) {
        tokens.prompt += charged.input;
        tokens.completion += charged.output;
      },
      note: (severity, text, marks = {}) =>
        void messages.push(noteOf({ severity, text, agentId, requestId, at: now(), ...marks })),
    };
  }

  return async (running, extend) => {
    const { request } = running;
    try {
      await waitForTurn(running);
      const target = targetOf(running);
      if (target === undefined) return { failure: keyUnreadable(), error: undefined };
      const remote = await remoteTools(running);
      try {
        return { conversed: await converse(options, conversationOf(running, { target, remote }, extend)) };
      } finally {
        await remote?.close();
      }
    } catch (error) {
      if (request.signal?.aborted === true) {
        return { failure: undefined, error: request.signal.reason, givenUp: true };
      }
      if (error instanceof ProviderError) {
        return { failure: failureOfChat(error, running.agent.head.llmConfig.provider), error };
      }
      return { failure: error instanceof AnnalsError ? { error, isConfiguration: false } : undefined, error };
    }
  };
}

/** Max. milliseconds that a request waits for earlier requests of its session. */
export const maxWaitForSession = 300_000;
const minPause = 15;
const maxPause = 150;

/**
 * Waits while earlier requests of the session are running, for at most `maxWait` milliseconds. Returns whether it
 * waited. Throws service_unavailable (503) after `maxWait`, and the signal's reason after an abort.
 */
export async function waitForTurnInSession(
  earlierAreUnderWay: () => Promise<boolean>,
  signal: AbortSignal | undefined,
  maxWait = maxWaitForSession,
): Promise<boolean> {
  let waited = false;
  const end = performance.now() + maxWait;
  for (let pause = minPause; await earlierAreUnderWay(); pause = Math.min(maxPause, pause * 1.5)) {
    if (performance.now() > end) {
      throw new AnnalsError('service_unavailable', 'Earlier requests of the session are still in progress.', {
        headers: { 'Retry-After': '5' },
      });
    }
    waited = true;
    await sleep(pause, undefined, { signal });
  }
  signal?.throwIfAborted();
  return waited;
}
