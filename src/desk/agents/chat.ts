import { AnnalsError } from '../../core/errors.ts';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { doWork } from '../../core/fairness/work.ts';
import { defaultLease, keepLease } from '../../core/repeat.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { causeOf, type FailureCause } from '../../providers/failure-cause.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { QueuedChat } from '../queued-chat.ts';
import { agentNoun, agentTable } from './agent-store.ts';
import { readAgentHead } from './agent-texts.ts';
import { type ChatAttemptOptions, createChatAttempt } from './chat-attempt.ts';
import { writeLogs } from './log-store.ts';
import { noteOf } from './request-log.ts';
import {
  type ChatOutcome,
  type ChatRequest,
  type ChatResult,
  createFinishChat,
  type FinishChatOptions,
  type RunningChat,
} from './running-chat.ts';
import {
  dropExpiredTurn,
  dropTurn,
  expiredTurns,
  extendTurn,
  findExpiredTurns,
  type TokenCounts,
  takePlace,
} from './turn-store.ts';

const maxAtOnce = 100;

/** A request that has its position in its session and will not be answered. */
interface UnansweredChat {
  readonly logId: string;
  readonly requestId: string;
  readonly sessionId: string;
  readonly agentId: string;
  /** Milliseconds. */
  readonly duration: number;
  readonly tokens: TokenCounts;
}

/** Logs a request that no process runs any more. A log of the process that ran it has more detail, and stays. */
async function logUnansweredChat(
  transaction: DatabaseTransaction,
  tenant: string,
  { logId: id, ...chat }: UnansweredChat,
  { text, cause, at }: { text: string; cause: FailureCause | undefined; at: number },
): Promise<void> {
  const { requestId, sessionId, agentId, duration, tokens } = chat;
  const messages = [noteOf({ severity: 'ERROR', text, agentId, requestId, at })];
  const log = { id, requestId, sessionId, agentId, duration, tokens, messages, at, cause };
  await writeLogs(transaction, tenant, log, { ifNone: true });
}

/** Logs requests of dead processes and of jobs that ended before they began, with known tokens, for all tenants. */
export async function logExpiredChats(db: Database, now: () => number, findTenants: FindTenants): Promise<void> {
  await forEachTenant(await findTenants(expiredTurns), (tenant) => logExpiredOf(db, tenant, now));
}

async function logExpiredOf(db: Database, tenant: string, now: () => number): Promise<void> {
  for (const turn of await findExpiredTurns(db, tenant, maxAtOnce)) {
    await inTransaction(db, async (transaction) => {
      const expired = await dropExpiredTurn(transaction, tenant, turn);
      if (expired === undefined) return;
      const unanswered = { ...expired, sessionId: turn.sessionId };
      const text =
        'Its process or its job ended before there was an answer. If a call of the model was under way, its tokens are unknown.';
      await logUnansweredChat(transaction, tenant, unanswered, { text, cause: 'cancelled', at: now() });
    });
  }
}

/** Runs one chat to its end and logs it. Rejects with the error for the client. */
export type RunChat = (request: ChatRequest) => Promise<ChatResult>;

/** Stores the job of a chat that has its position in its session, and returns the job's id. */
export type EnqueueChat = (transaction: DatabaseTransaction, chat: QueuedChat) => Promise<string>;

/**
 * Requests of a session run in the order in which they were accepted, of any kind and across processes: each takes its
 * position first, and begins when no earlier one is running (contract 8).
 */
export interface Chats {
  run: RunChat;
  /** Takes the position of a chat that runs as a job, in the transaction that stores the job. Returns the job's id. */
  accept(chat: QueuedChat, enqueue: EnqueueChat): Promise<string>;
  /** Gives up the position of a chat whose job must not begin, and logs why. */
  refuse(chat: QueuedChat, error: AnnalsError): Promise<void>;
  /** Throws resource_not_found or conflict_resource if the agent cannot chat. */
  refuseUnavailable(tenant: string, agentId: string): Promise<void>;
  /** Logs the requests of dead processes. */
  upkeep(findTenants: FindTenants): Promise<void>;
  /** Waits for running chats. */
  close(): Promise<void>;
}

export interface ChatOptions extends Omit<ChatAttemptOptions, 'availableAgent'>, FinishChatOptions {}

/** Milliseconds without a renewal after which a process is dead, and later requests of the session continue. */
const lease = defaultLease.length;

export function createChats(options: ChatOptions): Chats {
  const { db, logger, now } = options;
  const attempt = createChatAttempt({ ...options, availableAgent });
  const finish = createFinishChat(options);
  const underWay = new Set<Promise<unknown>>();
  const sessions = new Semaphore({ maxOfTenant: 1 });

  async function availableAgent(tenant: string, agentId: string): Promise<RunningChat['agent']> {
    const agent = await agentTable.find(db, tenant, agentId);
    if (agent === undefined) throw notFound(agentNoun);
    const head = await readAgentHead(agent.document);
    if (!head.enabled) throw new AnnalsError('conflict_resource', 'The agent is disabled.');
    return { ...agent, head };
  }

  /** One at a time, so requests of one session keep their order within this process. */
  async function inTurn<Result>(
    { tenant, sessionId, agentId }: QueuedChat,
    accept: (agent: RunningChat['agent']) => Promise<Result>,
  ): Promise<Result> {
    return await sessions.use(`${tenant} ${sessionId}`, undefined, async () => {
      return await accept(await availableAgent(tenant, agentId));
    });
  }

  async function begin(request: ChatRequest): Promise<RunningChat> {
    const { tenant, place, logId } = request;
    const began = performance.now();
    const runningOf = (agent: RunningChat['agent'], position: number): RunningChat => ({
      request,
      logId,
      agent,
      turn: { sessionId: request.sessionId, position },
      began,
      hasCalled: false,
      tokens: { prompt: 0, completion: 0 },
      messages: [],
    });
    if (place !== undefined) {
      const running = runningOf(await availableAgent(tenant, request.agentId), place);
      await extend(running);
      return running;
    }
    return await inTurn(request, async (agent) => {
      const turn = { ...request, lease };
      const position = await inTransaction(db, (transaction) => takePlace(transaction, tenant, turn), { retries: 3 });
      return runningOf(agent, position);
    });
  }

  async function run(request: ChatRequest): Promise<ChatResult> {
    const { agentId, sessionId } = request;
    const running = await begin(request);
    request.onAccepted?.();
    const endLease = keepLease(() => extend(running), {
      onError: (error) => logger.warn({ err: error }, 'a chat could not extend its lease'),
    });
    try {
      const outcome = await attempt(running, () => extend(running));
      if (keepsPlace(running, outcome)) await extend(running, 0);
      else await finish(running, outcome);
      if ('conversed' in outcome) {
        const { text: message, fromHistory } = outcome.conversed;
        return { answer: { agentId, agentType: 'generic', sessionId, message }, fromHistory };
      }
      throw outcome.failure?.error ?? outcome.error;
    } finally {
      endLease();
    }
  }

  async function extend({ request, turn, tokens }: RunningChat, milliseconds = lease): Promise<void> {
    await extendTurn(db, request.tenant, turn, { lease: milliseconds, tokens: { ...tokens } });
  }

  return {
    run(request) {
      // The outcome is stored even if the client has disconnected, which ends only the calls.
      const running = doWork({ tenant: request.tenant, writes: true }, () => run(request));
      underWay.add(running);
      running.catch(() => {}).finally(() => underWay.delete(running));
      return running;
    },

    async accept(chat, enqueue) {
      const { tenant } = chat;
      return await inTurn(chat, () =>
        inTransaction(db, async (transaction) => {
          const place = await takePlace(transaction, tenant, { ...chat, lease: 0 });
          return await enqueue(transaction, { ...chat, place });
        }),
      );
    },

    async refuse(chat, error) {
      const { tenant, sessionId, place } = chat;
      if (place === undefined) return;
      const reason = { text: error.message, cause: causeOf(error) };
      await inTransaction(db, async (transaction) => {
        await dropTurn(transaction, tenant, { sessionId, position: place });
        const unanswered = { ...chat, duration: 0, tokens: { prompt: 0, completion: 0 } };
        await logUnansweredChat(transaction, tenant, unanswered, { ...reason, at: now() });
      });
    },

    async refuseUnavailable(tenant, agentId) {
      await availableAgent(tenant, agentId);
    },

    async upkeep(findTenants) {
      await logExpiredChats(db, now, findTenants);
    },

    async close() {
      await Promise.allSettled([...underWay]);
    },
  };
}

/** A chat job given up before its first call keeps its position: the job is retried, or has ended. */
function keepsPlace({ request: { place }, hasCalled }: RunningChat, outcome: ChatOutcome): boolean {
  return place !== undefined && !hasCalled && 'givenUp' in outcome && outcome.givenUp === true;
}
