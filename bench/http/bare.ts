import { fastify } from 'fastify';
import pg from 'pg';

// As little as can stand between a request and its statement: Fastify without hooks, log and checks, and `pg`.
// STATEMENTS are those that Annals sends for the same paths.
const { DATABASE_URL: connectionString, STATEMENTS = '{}' } = process.env;
const statements: Record<string, pg.QueryConfig & { json: string }> = JSON.parse(STATEMENTS);
// As many connections as Annals gives to one tenant: with more, a turn of the event loop would take more answers at
// once.
const pool = new pg.Pool({ connectionString, max: 4 });
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
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
