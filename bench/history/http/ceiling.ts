import { hash } from 'node:crypto';
import { fastify } from 'fastify';
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import pg from 'pg';

// The ceiling: as little as can stand between a request and the rows of its page. No total, no query language, no log;
// each row of the benchmark is a statement that is known beforehand, on the table `plain` of one piece, by its best
// index. The token is verified with the keys that Annals publishes and from then on, as there, known by its hash.
const { DATABASE_URL: url, ANNALS_URL: annals = '', ANNALS_NOW: now = '', STATEMENTS: given = '{}' } = process.env;
const statements: Record<string, { text: string; values: unknown[] }> = JSON.parse(given);
const pool = new pg.Pool({ connectionString: url, max: 10 });
const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', annals));
const verified = new Map<string, JWTPayload>();

interface Row {
  moment: string;
  type: string;
  entity: string;
  entity_id: string;
  name: string | null;
  actor: string;
  related: string | null;
  paths: string;
}

async function claimsOf(authorization = ''): Promise<JWTPayload> {
  const token = authorization.slice('Bearer '.length);
  const digest = hash('sha256', token, 'base64url');
  let claims = verified.get(digest);
  if (claims === undefined) {
    claims = (await jwtVerify(token, keys, { typ: 'at+jwt', currentDate: new Date(Number(now)) })).payload;
    verified.set(digest, claims);
  }
  if ((claims.exp ?? 0) * 1000 <= Number(now)) throw new Error('the token has expired');
  return claims;
}

function text(row: Row): string {
  const name = row.name === null ? '' : `"name":${JSON.stringify(row.name)},`;
  return (
    `{"at":"${new Date(Number(row.moment)).toISOString()}","type":"${row.type}","entity":${JSON.stringify(row.entity)},` +
    `"entityId":${JSON.stringify(row.entity_id)},${name}"paths":${row.paths},"actor":${JSON.stringify(row.actor)},` +
    `"related":${row.related ?? '[]'}}`
  );
}

const app = fastify({ logger: false });
app.get<{ Params: { tenant: string }; Querystring: { row: string; page?: string; size?: string } }>(
  '/changelog/:tenant/changelogs',
  async (request, reply) => {
    const claims = await claimsOf(request.headers.authorization);
    const { tenant } = request.params;
    if (claims.tenant !== tenant || !String(claims.scope).includes('changelog.changelog_read')) {
      return await reply.code(403).send();
    }
    const { row, page = '1', size = '20' } = request.query;
    const statement = statements[row];
    if (statement === undefined) return await reply.code(404).send();
    const { rows } = await pool.query<Row>({ name: row, ...statement });
    reply.type('application/json; charset=utf-8');
    return `{"items":[${rows.map(text).join(',')}],"page":${page},"size":${size}}`;
  },
);
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
process.on('SIGTERM', () => process.exit());
