import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { TenantName } from '../../http/chosen-id.ts';
import type { Credentials } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { mayReadHistory, type Scope } from '../../http/scopes.ts';
import { RequestLog, RequestLogItem, SessionLog, SessionLogItem } from './answer-schemas.ts';
import { findLog, logRows } from './log-store.ts';
import type { LogReader } from './ports.ts';
import { AgentsPath } from './schemas.ts';
import type { AgentRoutesOptions } from './service.ts';

const tags = ['Agent logs'];
const scopes: readonly Scope[] = ['ai.agent_read', 'ai.agent_manage'];
const LogPath = Type.Object({ tenant: TenantName, id: Type.String({ $id: 'LogId' }) });

const kinds = [
  {
    of: 'agent_request_log',
    path: 'requests',
    one: 'RequestLog',
    noun: 'request log',
    log: RequestLog,
    item: RequestLogItem,
  },
  {
    of: 'agent_session_log',
    path: 'sessions',
    one: 'SessionLog',
    noun: 'session log',
    log: SessionLog,
    item: SessionLogItem,
  },
] as const;

/** Request logs and session logs (contract 8). */
export async function logRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  const { db, documents } = options.agents;

  for (const { of, path, one, noun, log: schema, item } of kinds) {
    listRoutes(app, options.paginator, {
      path: `/ai-service/:tenant/agentic/logs/${path}`,
      params: AgentsPath,
      tags,
      name: `${one}s`,
      many: `${noun}s`,
      item,
      scopes,
      page: ({ credentials }, query, page) => documents.page(logRows(of, readerOf(credentials)), query, page),
    });

    documentRoutes(app, {
      path: `/ai-service/:tenant/agentic/logs/${path}/:id`,
      params: LogPath,
      tags,
      name: one,
      singular: noun,
      read: {
        scopes,
        schema,
        async find({ params: { id }, request }) {
          const log = await findLog(db, readerOf(request.credentials), { of, id });
          if (log === undefined) throw new AnnalsError('resource_not_found', `There is no such ${noun}.`);
          return log;
        },
      },
    });
  }
}

/** Change history in a log is visible only to clients that may read it. */
function readerOf(credentials: Credentials): LogReader {
  return { tenant: credentials.tenant, readsHistory: mayReadHistory(credentials.scopes) };
}
