import pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import { isDistributed } from '../is-distributed.ts';
import { isBehindPooler, withSettings } from './pooler.ts';

/**
 * The URL of Annals' own database with a fixed search path: pg_catalog, the schema of our tables, pg_temp. PostgreSQL
 * picks functions and operators with the best matching types from all schemas in the path, so in any other schema other
 * roles could shadow its own. Warns if other roles may create objects in our schema. Behind a pooler, and in a
 * cluster's sessions on its workers, the role's own path applies: throws an OperatorError if other roles may create
 * objects in it.
 */
export async function fixSearchPath(url: string, tell: (line: string) => void): Promise<string> {
  const own = await onConnection(url, async (client) => {
    // The only name that is looked up in the role's path.
    const { rows } = await client.query<{ schema: string | null }>('select pg_catalog.current_schema() as schema');
    return rows[0]?.schema ?? undefined;
  });
  if (own === undefined)
    throw new OperatorError('the search_path of the role of DATABASE_URL has no schema that exists');
  // pg_catalog comes first implicitly. If named, new tables would go into it.
  const path = `${pg.escapeIdentifier(own)}, pg_temp`;
  const fixed = isBehindPooler(url) ? url : withSettings(url, { search_path: path });
  await onConnection(fixed, async (client) => {
    const { rows } = await client.query<{ search_path: string }>('show search_path');
    await client.query('begin; set local search_path = pg_catalog, pg_temp');
    const check = async (paths: readonly string[]) => {
      const others = paths.flatMap(schemasOf).filter((name) => !trusted.includes(name) && name !== own);
      for (const schema of await readSchemas(client, others)) {
        if (schema.creators.length > 0) throw new OperatorError(refusal(schema, path));
      }
    };
    await check(rows.map(({ search_path }) => search_path));
    for (const schema of await readSchemas(client, [own])) if (schema.creators.length > 0) tell(warning(schema));
    await client.query(`set local search_path = ${path}`);
    await check(await pathsOfWorkers(client));
    await client.query('commit');
  });
  return fixed;
}

const trusted = ['pg_catalog', 'pg_temp'];

interface Schema {
  name: string;
  quoted: string;
  /** Roles (or `public`) that may create objects or own some there, except those that could act as Annals anyway. */
  creators: string[];
}

function warning({ quoted, creators }: Schema): string {
  const roles = creators.join(', ');
  return (
    `roles other than that of Annals may create functions and operators in its schema ${quoted}, or own some there: ${roles}. ` +
    `Annals may call them with its own rights. Run: revoke create on schema ${quoted} from ${roles}`
  );
}

function refusal({ quoted, creators }: Schema, path: string): string {
  return (
    `names in Annals' statements would be looked up in the schema ${quoted}, in which ${creators.join(', ')} may create ` +
    'objects: something between Annals and its database drops the settings of connections. Run this, and make the pooler, ' +
    `or the workers of the cluster, reconnect: alter role current_user in database NAME set search_path = ${path}`
  );
}

/** The names of the schemas of a search_path, as `show` writes it. */
function schemasOf(path: string): string[] {
  return [...path.matchAll(/"((?:[^"]|"")*)"|[^,\s]+/g)].map(([all, quoted]) => quoted?.replaceAll('""', '"') ?? all);
}

/** The paths of a cluster's sessions on its reachable workers. */
async function pathsOfWorkers(client: pg.Client): Promise<string[]> {
  if (!(await isDistributed(client))) return [];
  const { rows } = await client.query<{ result: string }>(
    `select result from pg_catalog.run_command_on_workers('show search_path') where success`,
  );
  return rows.map(({ result }) => result);
}

/** In a transaction that looks names up only in pg_catalog. `$user` is the schema with the name of the role. */
async function readSchemas(client: pg.Client, names: readonly string[]): Promise<Schema[]> {
  const { rows } = await client.query<Schema>(schemasStatement, [names]);
  return rows;
}

// Roles that may create schemas in the database could create a missing one. Members of our role, and owners of the
// database or our tables, could act as we do anyway.
const schemasStatement = `
select named.name, quote_ident(resolved.name) as quoted, array(
         select distinct coalesce(quote_ident(role.rolname), 'public')
           from (select n.nspowner
                 union select acl.grantee from aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as acl where acl.privilege_type = 'CREATE'
                 union select proowner from pg_proc where pronamespace = n.oid
                 union select oprowner from pg_operator where oprnamespace = n.oid
                 union select typowner from pg_type where typnamespace = n.oid
                 union select acl.grantee from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) as acl
                        where n.oid is null and acl.privilege_type = 'CREATE') as creator (oid)
           left join pg_roles role on role.oid = creator.oid
          where creator.oid = 0
             or not (role.rolsuper or role.rolname = 'pg_database_owner' or role.oid = d.datdba
                     or pg_has_role(role.oid, current_user, 'member')
                     or exists (select from pg_class where relnamespace = n.oid and relname = 'migration' and relowner = role.oid))
          order by 1) as creators
  from unnest($1::text[]) with ordinality as named (name, place)
  cross join lateral (select case named.name when '$user' then current_user else named.name end as name) as resolved
  join pg_database d on d.datname = current_database()
  left join pg_namespace n on n.nspname = resolved.name
 order by named.place`;

async function onConnection<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'annals start',
    connectionTimeoutMillis: 5_000,
  });
  // The running query reports the error. Without a listener, this event would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
