import cluster from 'node:cluster';
import { fastify } from 'fastify';
import pg from 'pg';
import { tellProcessorTime } from './processor-time.ts';

// As little as can stand between a request and its statement: Fastify without hooks, log and checks, and `pg`. STATEMENTS
// are those that Annals sends for the same operations.
// WORKERS processes of it answer on one port, by the cluster module as well.
const { DATABASE_URL: connectionString, STATEMENTS = '{}', WORKERS = '1' } = process.env;
const statements: Record<string, pg.QueryConfig & { json: string }> = JSON.parse(STATEMENTS);

if (cluster.isPrimary && WORKERS !== '1') {
  const addresses: string[] = [];
  for (let worker = 0; worker < Number(WORKERS); worker++) {
    cluster.fork().on('message', (address: string) => {
      addresses.push(address);
      if (addresses.length === Number(WORKERS)) process.send?.(address);
    });
  }
  process.on('SIGTERM', () => process.exit());
} else {
  tellProcessorTime(await serve());
}

async function serve(): Promise<string> {
  // As many connections as Annals gives to one tenant: with more, a turn of the event loop would take more answers at once.
  const pool = new pg.Pool({ connectionString, max: 4 / Number(WORKERS) });
  const app = fastify();
  for (const [path, { json, ...statement }] of Object.entries(statements)) {
    app.get(path, async (_request, reply) => {
      if (statement.text !== '') {
        const { rows } = await pool.query(statement);
        if (rows.length === 0) throw new Error('the statement found nothing');
      }
      reply.type('application/json; charset=utf-8');
      return json;
    });
  }
  return await app.listen({ host: '127.0.0.1', port: 0 });
}
