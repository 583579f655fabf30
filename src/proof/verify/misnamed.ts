import { sql } from 'kysely';
import type { Connection } from '../../postgres/database.ts';
import type { Way } from '../../recording/change.ts';
import { hashOfErasedActor, hashOfKind, hashOfStoredActor, type StoredActor } from '../../recording/entry-columns.ts';
import { numberOfPath, numberOfRest } from '../../recording/path-names.ts';
import { lookupOfRecorder } from '../../recording/store.ts';
import { isReplacement } from '../bundle/proven-entry.ts';

// By its hash a recorder finds the number of a name. Who puts the hash of one name beside another makes that changes
// are recorded, and sealed, as those of somebody else.

const rowsAtOnce = 5_000;

interface Named {
  readonly number: number;
  /** In hexadecimal. */
  readonly lookup: string;
}

/**
 * Kinds, actors, recorders and names of paths of the tenant that stand beside the hash of another name, `limit` at
 * most: a few words each.
 */
export async function findMisnamed(db: Connection, tenant: string, limit: number): Promise<string[]> {
  const found = [
    ...(await search((after) => readKinds(db, tenant, after), { isRight: isKind, wordsOf: wordsOfKind }, limit)),
    ...(await search((after) => readActors(db, tenant, after), { isRight: isActor, wordsOf: wordsOfActor }, limit)),
    ...(await search(
      (after) => readRecorders(db, tenant, after),
      { isRight: isRecorder, wordsOf: wordsOfRecorder },
      limit,
    )),
    ...(await findMisnamedPaths(db, tenant)),
  ];
  return found.slice(0, limit);
}

/** Of a tenant with many names of paths some have no number, so there are few. */
async function findMisnamedPaths(db: Connection, tenant: string): Promise<string[]> {
  const { rows } = await sql<{ number: number; entity: string; name: string }>`
    select number, entity, name from change_path where tenant = ${tenant} order by entity, name`.execute(db);
  const isRight = ({ number, entity, name }: (typeof rows)[number]) =>
    number === (entity === '' && name === '' ? numberOfRest(tenant) : numberOfPath(tenant, entity, name));
  return rows.filter((row) => !isRight(row)).map(({ entity, name }) => `the path ${name} of ${entity}`);
}

async function search<Row extends Named>(
  read: (after: number) => Promise<Row[]>,
  { isRight, wordsOf }: { isRight: (row: Row) => boolean; wordsOf: (row: Row) => string },
  limit: number,
): Promise<string[]> {
  const found: string[] = [];
  for (let after = -(2 ** 53); found.length < limit; ) {
    const rows = await read(after);
    found.push(...rows.filter((row) => !isRight(row)).map(wordsOf));
    after = rows.at(-1)?.number ?? after;
    if (rows.length < rowsAtOnce) break;
  }
  return found;
}

interface NamedKind extends Named {
  readonly entity: string;
  readonly type: string;
  readonly related: readonly string[];
}

async function readKinds(db: Connection, tenant: string, after: number): Promise<NamedKind[]> {
  const { rows } = await sql<NamedKind>`
    select kind as number, replace(lookup::text, '-', '') as lookup, entity, type, related_entities as related from change_kind
      where tenant = ${tenant} and kind > ${after}::bigint order by kind limit ${rowsAtOnce}::integer`.execute(db);
  return rows;
}

const isKind = ({ lookup, entity, type, related }: NamedKind) =>
  hashOfKind(entity, type, related).toString('hex') === lookup;
const wordsOfKind = ({ entity, type }: NamedKind) => `the kind ${type} of ${entity}`;

type NamedActor = Named & StoredActor;

async function readActors(db: Connection, tenant: string, after: number): Promise<NamedActor[]> {
  const { rows } = await sql<NamedActor>`
    select actor as number, replace(lookup::text, '-', '') as lookup, name, actor_id as "actorId",
           behalf_name as "onBehalfOfName", behalf_id as "onBehalfOfId" from change_actor
      where tenant = ${tenant} and actor > ${after}::bigint order by actor limit ${rowsAtOnce}::integer`.execute(db);
  return rows;
}

function isActor({ lookup, number, ...actor }: NamedActor): boolean {
  const { name, actorId, onBehalfOfName, onBehalfOfId } = actor;
  const isErased = [name, actorId, onBehalfOfName, onBehalfOfId].some((one) => one !== null && isReplacement(one));
  const hashes = [hashOfStoredActor(actor), ...(isErased ? [hashOfErasedActor(number)] : [])];
  return hashes.some((hash) => hash.toString('hex') === lookup);
}

const wordsOfActor = ({ name }: NamedActor) => `the actor ${name}`;

interface NamedRecorder extends Named {
  readonly way: Way;
  readonly name: string | null;
  readonly issuer: string | null;
  readonly subject: string | null;
}

async function readRecorders(db: Connection, tenant: string, after: number): Promise<NamedRecorder[]> {
  const { rows } = await sql<NamedRecorder>`
    select recorder as number, replace(lookup::text, '-', '') as lookup, way, name, issuer, subject from change_recorder
      where tenant = ${tenant} and recorder > ${after}::bigint order by recorder limit ${rowsAtOnce}::integer`.execute(
    db,
  );
  return rows;
}

/** One that was erased has a random hash. */
function isRecorder({ lookup, way, name, issuer, subject }: NamedRecorder): boolean {
  if (isReplacement(name ?? '') || isReplacement(subject ?? '')) return true;
  const by = { way, by: name ?? '' };
  return lookupOfRecorder(issuer === null || subject === null ? by : { ...by, person: { issuer, subject } }) === lookup;
}

const wordsOfRecorder = ({ way, name, subject }: NamedRecorder) => `the ${way} ${name ?? subject ?? ''}`.trimEnd();
