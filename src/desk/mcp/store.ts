import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';

interface AgentToolTable {
  tenant: string;
  agent_id: string;
  server: string;
  sha256: string;
  definition: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    agent_tool: AgentToolTable;
  }
}

/** The stored definitions of an agent's tools: canonical JSON by SHA-256. */
export async function readDefinitions(
  db: Database,
  tenant: string,
  agentId: string,
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('agent_tool')
    .select(['sha256', 'definition'])
    .where(({ and }) => and({ tenant, agent_id: agentId }))
    .execute();
  return new Map(rows.map(({ sha256, definition }) => [sha256, definition]));
}

/** Stores what a server offers now. Keeps definitions of approved tools and of the agent's other servers. */
export async function keepDefinitions(
  transaction: DatabaseTransaction,
  tenant: string,
  { agentId, server }: { agentId: string; server: string },
  { offered, approved, servers }: KeptDefinitions,
): Promise<void> {
  const hashes = [...offered.keys()];
  await transaction
    .deleteFrom('agent_tool')
    .where(({ and }) => and({ tenant, agent_id: agentId }))
    .where(
      sql<boolean>`(server <> all(${servers}::text[])
        or server = ${server} and sha256 <> all(${[...hashes, ...approved]}::text[]))`,
    )
    .execute();
  await sql`
    insert into agent_tool (tenant, agent_id, server, sha256, definition)
      select ${tenant}, ${agentId}, ${server}, tool.sha256, tool.definition
        from unnest(${hashes}::text[], ${[...offered.values()]}::text[]) as tool (sha256, definition)
      on conflict do nothing`.execute(transaction);
}

export interface KeptDefinitions {
  readonly offered: ReadonlyMap<string, string>;
  /** Hashes of approved tools. */
  readonly approved: readonly string[];
  /** The names of all servers of the agent. */
  readonly servers: readonly string[];
}
