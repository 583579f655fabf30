import type { FastifyBaseLogger } from 'fastify';
import type { Sealer } from '../../core/sealing.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import type { ProviderCaller } from '../../providers/provider-caller.ts';
import type { OpenToolServer } from '../mcp/tool-server.ts';
import type { ChatQueue } from '../queued-chat.ts';
import { createOwnAgents, type OwnAgents, type RefusesAddress } from './agent-writes.ts';
import { type Chats, createChats } from './chat.ts';
import { createModelCaller } from './model-caller.ts';
import type { AskHistory, QueueMail } from './ports.ts';
import { createReadTools, type ReadTools } from './read-tools.ts';

/** Agents, chats with them, and their logs (contract 8). */
export interface Agents {
  readonly db: Database;
  readonly own: OwnAgents;
  readonly readTools: ReadTools;
  readonly documents: DocumentLists;
  readonly chats: Chats;
  readonly jobs: ChatQueue;
}

export interface AgentRoutesOptions {
  agents: Agents;
  paginator: Paginator;
}

export interface AgentsOptions {
  db: Database;
  sealer: Sealer;
  logger: FastifyBaseLogger;
  /** Milliseconds since 1970. */
  now: () => number;
  documents: DocumentLists;
  askHistory: AskHistory;
  openToolServer: OpenToolServer;
  refusesAddress: RefusesAddress;
  caller: ProviderCaller;
  queueMail: QueueMail;
  jobs: ChatQueue;
  notificationEmail(tenant: string): Promise<string | undefined>;
}

export function createAgents(options: AgentsOptions): Agents {
  const { db, sealer, logger, now, documents, jobs, caller } = options;
  const models = createModelCaller(caller);
  const { askHistory, openToolServer, queueMail, notificationEmail } = options;
  return {
    db,
    documents,
    jobs,
    own: createOwnAgents({ db, sealer, now, refusesAddress: options.refusesAddress }),
    readTools: createReadTools({ db, sealer, now, models, openToolServer }),
    chats: createChats({ db, sealer, logger, now, models, askHistory, openToolServer, queueMail, notificationEmail }),
  };
}
