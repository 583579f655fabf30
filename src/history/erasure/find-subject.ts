import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import { hashOf } from '../../core/text-hash.ts';
import { int8Array, uuidArray } from '../../postgres/binary-arrays.ts';
import type { Connection, Database } from '../../postgres/database.ts';
import { unknownActor } from '../../recording/change.ts';
import { listErasures } from './erasure-store.ts';
import { isIn, likePatterns } from './replace-in-text.ts';
import { openSubject, type SealedSubject, type Subject, textOfSubject } from './subject.ts';

interface Searched {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly tenant: string;
  readonly subject: Subject;
}

/** An erasure of the same subject that was interrupted. */
export async function findUnfinished({ db, sealer, tenant, subject }: Searched) {
  for (const stored of await listErasures(db, tenant, { limit: 1_000 })) {
    if (stored.endedAt !== null) continue;
    const sealed = openSubject(sealer, { ...stored, tenant });
    if (sealed !== undefined && textOfSubject(sealed.subject) === textOfSubject(subject)) {
      return { erasure: stored.erasure, sealed };
    }
  }
  return undefined;
}

/** The subject with its replacement and the texts to search. */
export async function newSubject({ db, tenant, subject }: Omit<Searched, 'sealer'>): Promise<SealedSubject> {
  const replacement = `erased-${randomBytes(8).toString('hex')}`;
  if ('entity' in subject) {
    const names = await namesOfDocument(db, tenant, subject);
    return { subject, replacement, needles: [subject.entityId, ...names] };
  }
  const names = 'actorId' in subject ? await namesBeside(db, tenant, subject.actorId) : undefined;
  const isNumber = 'actorId' in subject && /^\d+$/.test(subject.actorId);
  const needles =
    'actor' in subject
      ? [subject.actor]
      : [
          ...(isNumber ? [] : [subject.actorId]),
          ...(names ?? []).filter(({ isShared }) => !isShared).map(({ name }) => name),
        ];
  const numbers = isNumber ? [subject.actorId] : undefined;
  // Sessions and accesses have the provider's id of the person without the name.
  const recorders = await findRecorders(db, tenant, { subject, replacement, needles, numbers });
  const { rows } = await sql<{ known: string }>`
    select distinct subject as known from change_recorder
      where tenant = ${tenant} and recorder = any (${int8Array(recorders)}::bigint[]) and subject is not null`.execute(
    db,
  );
  const ids = 'actorId' in subject ? [subject.actorId, ...rows.map(({ known }) => known)] : undefined;
  return {
    subject,
    replacement,
    anywhere: ids?.filter(isDistinctive),
    needles: [...new Set([...needles, ...rows.map(({ known }) => known).filter((known) => !numbers?.includes(known))])],
    numbers,
    names: names?.map(({ name }) => name),
  };
}

/** Whether an id is no word of a language, such as `create`, nor a number. */
function isDistinctive(id: string): boolean {
  return /[\d@]/.test(id) && !/^\d+$/.test(id);
}

async function namesOfDocument(db: Database, tenant: string, of: { entity: string; entityId: string }) {
  const document = uuidArray([hashOf(of.entityId)]);
  const { rows } = await sql<{ name: string }>`
    select distinct e.name from change_entry e join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      where e.tenant = ${tenant} and e.document = any (${document}::uuid[]) and k.entity = ${of.entity} and e.name is not null`.execute(
    db,
  );
  return rows.map(({ name }) => name);
}

/** The names beside the id of a person, and whether somebody else has the same name, with another id or without one. */
async function namesBeside(db: Database, tenant: string, id: string): Promise<{ name: string; isShared: boolean }[]> {
  const { rows } = await sql<{ name: string; isShared: boolean }>`
    with people as materialized (
      select a.actor_id as id, a.name from change_actor a where a.tenant = ${tenant}
      union
      select a.behalf_id, a.behalf_name from change_actor a where a.tenant = ${tenant} and a.behalf_name is not null
    )
    select p.name, exists (select from people o where o.name = p.name and o.id is distinct from ${id}) as "isShared"
      from people p
      where p.id = ${id} and p.name <> ${unknownActor} and p.name !~ '^erased-[0-9a-f]{16}$'
      order by p.name`.execute(db);
  return rows;
}

/** Rows of the dictionary of actors that have the subject, by their numbers. A row may have it twice. */
export interface SubjectActors {
  /** Whose actor's name goes, and the id with it or not. */
  readonly names: readonly number[];
  readonly ids: readonly number[];
  /** The same of the person on whose behalf the actor acts. */
  readonly behalfNames: readonly number[];
  readonly behalfIds: readonly number[];
  /** Those that still have the name or the id. */
  readonly left: readonly number[];
}

interface ActorRow {
  readonly actor: number;
  readonly isOfActor: boolean;
  readonly isOfActorId: boolean;
  readonly isOnBehalf: boolean;
  readonly isOnBehalfId: boolean;
  readonly isLeft: boolean;
}

/**
 * Finds the subject also where the erasure has replaced it: entries may have been recorded with the row since. By a name
 * an id goes only if it is what the OpenID provider knows the person by.
 */
export async function findActors(
  db: Connection,
  tenant: string,
  { subject, replacement, needles }: Omit<SealedSubject, 'names'>,
): Promise<SubjectActors> {
  const rows = 'entity' in subject ? [] : await readActors(db, tenant, { subject, replacement, needles });
  const numbersOf = (isMeant: (row: ActorRow) => boolean) => rows.filter(isMeant).map(({ actor }) => actor);
  return {
    names: numbersOf(({ isOfActor, isOfActorId }) => isOfActor && !isOfActorId),
    ids: numbersOf(({ isOfActorId }) => isOfActorId),
    behalfNames: numbersOf(({ isOnBehalf, isOnBehalfId }) => isOnBehalf && !isOnBehalfId),
    behalfIds: numbersOf(({ isOnBehalfId }) => isOnBehalfId),
    left: numbersOf(({ isLeft }) => isLeft),
  };
}

async function readActors(
  db: Connection,
  tenant: string,
  { subject, replacement, needles }: Omit<SealedSubject, 'names'>,
): Promise<ActorRow[]> {
  const isById = 'actorId' in subject;
  const original = isById ? subject.actorId : 'actor' in subject ? subject.actor : '';
  const [acting, represented] = isById ? ['a.actor_id', 'a.behalf_id'] : ['a.name', 'a.behalf_name'];
  const is = (column: string) => sql`coalesce(${sql.ref(column)} in (${original}, ${replacement}), false)`;
  const ids = [replacement, ...needles];
  const goes = (column: string) =>
    isById ? sql`true` : sql`coalesce(${sql.ref(column)} = any (${ids}::text[]), false)`;
  const { rows } = await sql<ActorRow>`
    select a.actor, ${is(acting)} as "isOfActor", ${is(acting)} and ${goes('a.actor_id')} as "isOfActorId",
           ${is(represented)} as "isOnBehalf", ${is(represented)} and ${goes('a.behalf_id')} as "isOnBehalfId",
           ${original} in (${sql.ref(acting)}, ${sql.ref(represented)}) is true as "isLeft"
      from change_actor a where a.tenant = ${tenant} and (${is(acting)} or ${is(represented)})
      order by a.actor`.execute(db);
  return rows;
}

/** Ids beside the name of an actor, which an erasure by the name leaves. */
export async function findIdsBeside(db: Connection, tenant: string, sealed: SealedSubject): Promise<string[]> {
  if (!('actor' in sealed.subject)) return [];
  const { names, behalfNames } = await findActors(db, tenant, sealed);
  const { rows } = await sql<{ id: string }>`
    select distinct id from (
      select a.actor_id as id from change_actor a
        where a.tenant = ${tenant} and a.actor = any (${int8Array(names)}::bigint[])
      union all
      select a.behalf_id from change_actor a
        where a.tenant = ${tenant} and a.actor = any (${int8Array(behalfNames)}::bigint[])
    ) beside
      where id !~ '^erased-[0-9a-f]{16}$' order by id`.execute(db);
  return rows.map(({ id }) => id);
}

/** The number of entries by the names of a person without the id, or with another one. */
export async function countSameName(db: Connection, tenant: string, { subject, names }: SealedSubject) {
  if (!('actorId' in subject)) return undefined;
  const { rows } = await sql<{ entries: number }>`
    select count(*) as entries from change_actor a
      join change_entry e on e.tenant = ${tenant} and e.actor = a.actor
      where a.tenant = ${tenant}
        and (a.name = any (${[...(names ?? [])]}::text[]) and a.actor_id is distinct from ${subject.actorId}
          or a.behalf_name = any (${[...(names ?? [])]}::text[]) and a.behalf_id is distinct from ${subject.actorId})`.execute(
    db,
  );
  return rows[0]?.entries ?? 0;
}

const canonicalUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The number of entries with an id or a name of the subject in their correlation id, which stays. */
export async function countCorrelated(db: Connection, tenant: string, sealed: SealedSubject): Promise<number> {
  const { needles, numbers = [], names = [], replacement } = sealed;
  const words = { needles: [...new Set([...needles, ...numbers, ...names])], replacement };
  const { rows } = await sql<{ id: string; entries: number }>`
    select coalesce(e.correlation::text, e.correlation_text) as id, count(*) as entries from change_entry e
      where e.tenant = ${tenant} and (e.correlation_text like any (${likePatterns(words.needles)}::text[])
        or e.correlation::text = any (${words.needles.filter((needle) => canonicalUuid.test(needle))}::text[]))
      group by 1`.execute(db);
  return rows.filter(({ id }) => isIn(id, words)).reduce((sum, { entries }) => sum + entries, 0);
}

/**
 * Clients named like the person, and people behind the person's entries: numbers of change_recorder. By an id these are
 * those who signed in for what they changed in Annals, since a client may record what others did.
 */
export async function findRecorders(
  db: Database,
  tenant: string,
  { subject, replacement, needles, numbers = [] }: Omit<SealedSubject, 'names'>,
): Promise<number[]> {
  if ('entity' in subject) return [];
  const known = [...needles, ...numbers];
  const { names, ids } = await findActors(db, tenant, { subject, replacement, needles });
  const isKnown =
    'actor' in subject
      ? sql`r.name = ${subject.actor}`
      : sql`(r.name = any (${known}::text[]) or r.subject = any (${known}::text[]))`;
  const { rows } = await sql<{ recorder: number }>`
    select r.recorder from change_recorder r where r.tenant = ${tenant} and ${isKnown}
    union
    select r.recorder from change_entry e
      join change_recorder r on r.tenant = ${tenant} and r.recorder = e.recorded_by
      where e.tenant = ${tenant} and e.actor = any (${int8Array([...names, ...ids])}::bigint[]) and r.subject is not null
        and r.subject <> ${replacement} ${'actor' in subject ? sql`` : sql`and r.way = 'service'`}`.execute(db);
  return rows.map(({ recorder }) => recorder);
}
