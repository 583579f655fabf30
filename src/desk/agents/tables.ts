import type { Generated } from 'kysely';

interface AgentTable {
  tenant: string;
  id: string;
  version: number;
  /** The agent as JSON text for clients, with a mask in place of its key. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
  sealed_key: Uint8Array | null;
  sealed_headers: Uint8Array | null;
  enabled: boolean;
  /** Consecutive configuration failures since the agent was last enabled. */
  failures: Generated<number>;
  /** How often the agent has been enabled. Failures of an earlier term do not count. */
  term: Generated<number>;
}

interface AgentSessionTable {
  tenant: string;
  id: string;
  turns: Generated<number>;
}

interface AgentTurnTable {
  tenant: string;
  session_id: string;
  position: number;
  request_id: string;
  agent_id: string;
  /** The id of the request's log; null in turns older than this column. */
  log_id: string | null;
  state: 'running' | 'answered';
  began_at: Generated<Date>;
  expires_at: Date;
  prompt_tokens: Generated<number>;
  completion_tokens: Generated<number>;
  /** The messages of the turn as JSON text; null while it runs. */
  exchange: string | null;
  bytes: Generated<number>;
  from_history: Generated<boolean>;
}

interface AgentRequestLogTable {
  tenant: string;
  id: string;
  /** The log as JSON text for clients that may not read the change history. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
  /** The log for clients that may read the change history; null if identical. */
  full_document: string | null;
  full_fields: string | null;
}

interface AgentSessionLogTable extends AgentRequestLogTable {
  /** Milliseconds. */
  duration: number;
  prompt_tokens: number;
  completion_tokens: number;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    agent: AgentTable;
    agent_session: AgentSessionTable;
    agent_turn: AgentTurnTable;
    agent_request_log: AgentRequestLogTable;
    agent_session_log: AgentSessionLogTable;
  }
}
