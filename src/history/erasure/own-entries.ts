import { sql } from 'kysely';
import { entriesOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import { keysOfPath } from '../../core/path-pattern.ts';
import { int8Array } from '../../postgres/binary-arrays.ts';
import type { Database } from '../../postgres/database.ts';
import { ownEntities } from '../../recording/change.ts';
import type { Place } from '../entries/entry-store.ts';
import { asWords, identifying, isIn, likePatterns, withNumbers } from './replace-in-text.ts';
import { type ErasableEntry, hasPerson, rewriteEntry } from './rewrite-entry.ts';
import type { SealedSubject } from './subject.ts';

/** Limits of a read: candidates, and bytes of their texts. */
const maxEntries = 100;
const maxBytes = 8 * 1024 * 1024;

/** An id or a path's name with the person that cannot be replaced, or a text with a word that may not be the person. */
export interface Leftover {
  readonly entity: string;
  readonly entityId: string;
  /** A column, or for instance `id`, `path contacts.Jane`, `value of q`. */
  readonly where: string;
}

interface OwnEntries {
  readonly places: readonly Place[];
  readonly leftovers: readonly Leftover[];
  /** Names and values with a word that is a name or an id of a person by the id, which stay. */
  readonly mentions: readonly Leftover[];
}

/**
 * Searches the history of Annals' own objects (configuration, subscriptions, views, budgets, agents, custom types and
 * instances), whose names and values may contain a person, regardless of who made the change.
 */
export async function findOwnEntries(db: Database, tenant: string, subject: SealedSubject): Promise<OwnEntries> {
  const places: Place[] = [];
  const leftovers = new Map<string, Leftover>();
  const mentions = new Map<string, Leftover>();
  const candidates = await findCandidates(db, tenant, subject);
  for (let first = 0; first < candidates.length; ) {
    const portion = candidates.slice(first, first + maxEntries);
    const { entries, read } = await readEntries(db, tenant, portion);
    first += read;
    for (const entry of entries) {
      if (rewriteEntry(entry, subject, new Map()).erased !== '[]') places.push(entry);
      for (const leftover of leftoversOf(entry, subject)) leftovers.set(JSON.stringify(leftover), leftover);
      for (const mention of mentionsIn(entry, subject)) mentions.set(JSON.stringify(mention), mention);
    }
  }
  return {
    places: places.map(({ at, sequence }) => ({ at, sequence })),
    leftovers: [...leftovers.values()],
    mentions: [...mentions.values()],
  };
}

function mentionsIn(entry: ErasableEntry, subject: SealedSubject): Leftover[] {
  if (subject.anywhere === undefined) return [];
  const words = asWords(subject);
  const { entityId, name, paths } = rewriteEntry(entry, subject, new Map());
  const members = entriesOf(parseJson(paths));
  const where = [
    ...(isIn(entityId, words) ? ['id'] : []),
    ...(name !== null && isIn(name, words) ? ['name'] : []),
    ...members.filter(([path]) => keysOfPath(path).some((key) => isIn(key, words))).map(([path]) => `path ${path}`),
    ...members.filter(([, sides]) => isIn(compactText(sides), words)).map(([path]) => `value of ${path}`),
  ];
  return where.map((place) => ({ entity: entry.entity, entityId: entry.entityId, where: place }));
}

function leftoversOf({ entity, entityId, paths }: ErasableEntry, subject: SealedSubject): Leftover[] {
  const isSubject =
    'entity' in subject.subject && subject.subject.entity === entity && subject.subject.entityId === entityId;
  const names = identifying(subject);
  const inPaths = entriesOf(parseJson(paths)).filter(([path]) => keysOfPath(path).some((key) => isIn(key, names)));
  return [...(isIn(entityId, names) && !isSubject ? ['id'] : []), ...inPaths.map(([path]) => `path ${path}`)].map(
    (where) => ({ entity, entityId, where }),
  );
}

/**
 * Entries that may contain one of the texts, except those that applications recorded under the same entity types.
 * Entries without a recorder are the oldest changes of own objects, and imports of their history.
 */
async function findCandidates(db: Database, tenant: string, subject: SealedSubject): Promise<Place[]> {
  const { needles } = withNumbers(subject);
  // In the name of a path, a key has a backslash before its dots.
  const patterns = likePatterns([...needles, ...needles.map((needle) => needle.replace(/[\\.]/g, '\\$&'))]);
  const { rows } = await sql<Place>`
    with kinds as materialized (
      select k.kind from change_kind k
        where k.tenant = ${tenant} and (k.entity = any (${[...ownEntities]}::text[])
          or k.entity in (select c.id from custom_entity c where c.tenant = ${tenant})
          or k.entity in (
            select e.entity_id from change_entry e join change_kind t on t.tenant = ${tenant} and t.kind = e.kind
              where e.tenant = ${tenant} and t.entity = 'custom-entity'))
    )
    select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.kind = any (array(select kind from kinds))
        and (e.recorded_by is null or e.recorded_by = 1
          or e.recorded_by in (select r.recorder from change_recorder r where r.tenant = ${tenant} and r.way = 'service'))
        and (e.entity_id like any (${patterns}::text[]) or e.name like any (${patterns}::text[])
          or e.paths like any (${patterns}::text[]) or e.context like any (${patterns}::text[]))
      order by e.at, e.sequence`.execute(db);
  return rows;
}

/** `read`: the number of places covered, fewer than passed at the limit of bytes, more than entries after deletions. */
async function readEntries(
  db: Database,
  tenant: string,
  places: readonly Place[],
): Promise<{ entries: (ErasableEntry & Place)[]; read: number }> {
  const { rows } = await sql<ErasableEntry & Place & { place: number }>`
    select s.*, k.entity, false as "isOfActor", false as "isOfActorId", false as "isOnBehalf", false as "isOnBehalfId",
           false as "isOfRecorder", true as "isOfService"
      from (
        select e.at, e.sequence, e.kind, e.entity_id as "entityId", e.name, e.related, e.paths, e.context, null as erased, w.place,
               sum(octet_length(e.paths)) over (order by w.place) - octet_length(e.paths) as before
          from ${unnested(places)} with ordinality as w (at, sequence, place)
          join change_entry e on e.tenant = ${tenant} and e.at = w.at and e.sequence = w.sequence
      ) s
      join change_kind k on k.tenant = ${tenant} and k.kind = s.kind
      where s.before < ${maxBytes}::bigint order by s.place`.execute(db);
  const last = rows.at(-1);
  return { entries: rows, read: last === undefined ? places.length : last.place };
}

/** Entries of a read whose contexts are searched. */
const maxContexts = 200;

/** The next entries after a place whose contexts have the id of the person in one of the named members. */
export async function findContexts(
  db: Database,
  tenant: string,
  { subject }: SealedSubject,
  after: Place | undefined,
): Promise<{ places: readonly Place[]; reached: Place | undefined }> {
  if (!('actorId' in subject) || subject.context === undefined) return { places: [], reached: undefined };
  const behind =
    after === undefined ? sql`true` : sql`(e.at, e.sequence) > (${after.at}::bigint, ${after.sequence}::bigint)`;
  const { rows } = await sql<Place & { context: string }>`
    select e.at, e.sequence, e.context from change_entry e
      where e.tenant = ${tenant} and ${behind} and e.context like any (${likePatterns([subject.actorId])}::text[])
      order by e.at, e.sequence limit ${maxContexts}::integer`.execute(db);
  const found = rows.filter(({ context }) => hasPerson(context, subject));
  return { places: found.map(({ at, sequence }) => ({ at, sequence })), reached: rows.at(-1) };
}

/** SQL: the places as a table function with the columns `at` and `sequence`. */
export function unnested(places: readonly Place[]) {
  const [ats, sequences] = [places.map(({ at }) => at), places.map(({ sequence }) => sequence)];
  return sql`unnest(${int8Array(ats)}::bigint[], ${int8Array(sequences)}::bigint[])`;
}
