import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import { hashOf } from '../../core/text-hash.ts';
import { uuidArray } from '../../postgres/binary-arrays.ts';
import type { Connection, Database } from '../../postgres/database.ts';
import { listErasures } from './erasure-store.ts';
import { openSubject, type SealedSubject, type Subject, textOfSubject } from './subject.ts';

interface Searched {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly tenant: string;
  readonly subject: Subject;
}

/** Names of a document that are searched in addition to its id. */
const maxNames = 100;

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
  if ('actor' in subject) {
    // Sessions and accesses have the provider's id of the person without the name.
    const recorders = await findRecorders(db, tenant, { subject, replacement });
    const { rows } = await sql<{ known: string }>`
      select distinct subject as known from change_recorder
        where tenant = ${tenant} and recorder = any (${recorders}::bigint[]) and subject is not null`.execute(db);
    return { subject, replacement, needles: [subject.actor, ...rows.map(({ known }) => known)] };
  }
  const document = uuidArray([hashOf(subject.entityId)]);
  const { rows } = await sql<{ name: string }>`
    select distinct e.name from change_entry e join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      where e.tenant = ${tenant} and e.document = any (${document}::uuid[]) and k.entity = ${subject.entity} and e.name is not null
      limit ${maxNames}::integer`.execute(db);
  return { subject, replacement, needles: [subject.entityId, ...rows.map(({ name }) => name)] };
}

/** Whether the tenant's history has the name of the actor. */
export async function hasActor(db: Connection, tenant: string, subject: Subject): Promise<boolean> {
  if (!('actor' in subject)) return false;
  const { rows } = await sql`
    select from change_actor where tenant = ${tenant} and lookup = any (${uuidArray([hashOf(subject.actor)])}::uuid[])`.execute(
    db,
  );
  return rows.length > 0;
}

/** Clients named like the actor, and people behind the actor's entries: numbers of change_recorder. */
export async function findRecorders(
  db: Database,
  tenant: string,
  { subject, replacement }: Omit<SealedSubject, 'needles'>,
): Promise<number[]> {
  if (!('actor' in subject)) return [];
  const actors = uuidArray([hashOf(subject.actor), hashOf(replacement)]);
  const { rows } = await sql<{ recorder: number }>`
    select r.recorder from change_recorder r where r.tenant = ${tenant} and r.name = ${subject.actor}
    union
    select r.recorder from change_actor a
      join change_entry e on e.tenant = ${tenant} and e.actor = a.actor
      join change_recorder r on r.tenant = ${tenant} and r.recorder = e.recorded_by
      where a.tenant = ${tenant} and a.lookup = any (${actors}::uuid[]) and r.subject is not null
        and r.subject <> ${replacement}`.execute(db);
  return rows.map(({ recorder }) => recorder);
}
