import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sql } from 'kysely';
import { hasCode, OperatorError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import { writeOnce } from '../../postgres/write-once.ts';
import { readLog } from '../../proof/log/log-store.ts';
import type { Signer } from '../../proof/log/note.ts';
import type { LogSigner } from '../../proof/log/signer.ts';
import { signCertificate } from '../../proof/verify/verify-proof.ts';
import { entriesOfRow } from '../../recording/positions.ts';
import type { ErasedCounts } from './erase.ts';
import { listErasures } from './erasure-store.ts';
import { openSubject, type Subject } from './subject.ts';

/** Erasures of a tenant that are searched, and remaining ids that a certificate lists. */
const maxErasures = 10_000;
const maxLeft = 1_000;

/** What an erasure changed in the history, by entity type. */
interface ErasedEntries {
  readonly entity: string;
  readonly entries: number;
  /** As in entries: `actor`, `paths.email`. */
  readonly erased: readonly string[];
}

/**
 * The signer of certificates. Throws an OperatorError if it does not seal the history, or if the file cannot be
 * written.
 */
export async function prepareCertificate(
  db: Database,
  tenant: string,
  signer: LogSigner,
  file: string,
): Promise<Signer> {
  const log = await readLog(db, tenant);
  if (log === undefined || signer.keyOf(log.origin) !== log.vkey) {
    throw new OperatorError(
      `--certificate needs a sealed history, and that of ${tenant} is not sealed with the key of ANNALS_PROOF_KEY_FILE. Nothing was erased`,
    );
  }
  const isFree = await access(file).then(
    () => false,
    (error: unknown) => hasCode(error, 'ENOENT'),
  );
  if (!isFree)
    throw new OperatorError(`--certificate: ${file} already exists, or cannot be created. Nothing was erased`);
  await access(dirname(file), constants.W_OK).catch((error: unknown) => {
    throw new OperatorError(`--certificate: ${file} cannot be created. Nothing was erased`, { cause: error });
  });
  return signer.of(log.origin);
}

interface CertifiedErasure {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly tenant: string;
  readonly subject: Subject;
  readonly counts: ErasedCounts;
  readonly isVacuumed: boolean;
  readonly now: () => number;
}

/** Writes what was erased of the subject, in this and earlier runs, and what stays. Annals keeps no copy. */
export async function writeCertificate(file: string, signer: Signer, certified: CertifiedErasure): Promise<void> {
  const { tenant, subject, counts, isVacuumed, now } = certified;
  const body = {
    tenant,
    writtenAt: new Date(now()).toISOString(),
    subject,
    erasures: await erasuresOf(certified),
    // Receipts do not cover other tables, so earlier runs are unknown.
    rowsOfThisRun: counts.rows,
    left: (counts.left ?? []).slice(0, maxLeft),
    stays: staying(isVacuumed, counts),
    untold: counts.untold ?? [],
  };
  const text = signCertificate(body, signer);
  const isWritten = await writeOnce(file, text).then(
    (content) => content === text,
    () => false,
  );
  if (!isWritten) {
    throw new OperatorError(
      `${file} could not be written, or another process wrote it. The erasure is done; run the same command again for the certificate`,
    );
  }
}

/** The erasures of the same person or document, oldest first. */
async function erasuresOf({ db, sealer, tenant, subject }: CertifiedErasure) {
  const all = await listErasures(db, tenant, { limit: maxErasures });
  const own = all.filter((stored) => {
    const sealed = openSubject(sealer, { ...stored, tenant });
    return sealed !== undefined && isSame(sealed.subject, subject);
  });
  return await Promise.all(
    own.toReversed().map(async ({ erasure, begunAt, endedAt, reason, entries }) => {
      const receipts = await receiptsOf(db, tenant, erasure);
      return { erasure, begunAt, endedAt, reason, entries, receipts, history: await entriesOf(db, tenant, receipts) };
    }),
  );
}

function isSame(a: Subject, b: Subject): boolean {
  if ('actor' in a) return 'actor' in b && a.actor === b.actor;
  if ('actorId' in a) return 'actorId' in b && a.actorId === b.actorId;
  return 'entity' in b && a.entity === b.entity && a.entityId === b.entityId;
}

/** The positions of an erasure's receipts. Receipts of earlier versions do not name their erasure. */
async function receiptsOf(db: Database, tenant: string, erasure: string): Promise<number[]> {
  const { rows } = await sql<{ position: number }>`
    select position from change_receipt
      where tenant = ${tenant} and body like ${`%"erasure":"${erasure}"%`} order by position`.execute(db);
  return rows.map(({ position }) => position);
}

async function entriesOf(db: Database, tenant: string, receipts: readonly number[]): Promise<ErasedEntries[]> {
  const { rows } = await sql<{ entity: string; entries: number; erased: string }>`
    with ranges as materialized (
      select (range ->> 0)::bigint as since, (range ->> 1)::bigint as until
        from change_receipt r cross join lateral jsonb_array_elements(r.body::jsonb -> 'positions') as range
        where r.tenant = ${tenant} and r.position = any (${[...receipts]}::bigint[])
    )
    select k.entity, e.erased, count(distinct (e.at, e.sequence)) as entries
      from ranges
      cross join lateral (
        select c.first from change_position c where c.tenant = ${tenant} and c.first <= ranges.since order by c.first desc limit 1
      ) b
      join change_position p on p.tenant = ${tenant} and p.first between b.first and ranges.until
      join lateral ${entriesOfRow} as entry on p.first + entry.number - 1 between ranges.since and ranges.until
      join change_entry e on e.tenant = ${tenant} and e.at = entry.at and e.sequence = entry.sequence
      join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      where e.erased is not null
      group by k.entity, e.erased`.execute(db);
  const byEntity = Map.groupBy(rows, ({ entity }) => entity);
  return [...byEntity].map(([entity, found]) => ({
    entity,
    entries: found.reduce((sum, { entries }) => sum + entries, 0),
    erased: [...new Set(found.flatMap(({ erased }) => JSON.parse(erased) as string[]))].sort(),
  }));
}

function staying(
  isVacuumed: boolean,
  { sameName = 0, ids = [], correlated = 0 }: ErasedCounts,
): { what: string; why: string }[] {
  return [
    {
      what: 'the entries, with their types, times, entity types, names of paths and counts',
      why: 'they say nothing of the person, and totals stay what they were',
    },
    {
      what: 'whom the erasure was about, sealed under the secret key of the installation',
      why: 'a backup that is restored is erased from again',
    },
    ...(sameName === 0
      ? []
      : [
          {
            what: `${sameName} entries by the same name without the id, or with another`,
            why: 'nothing says that they are of the person; an erasure of the name erases them',
          },
        ]),
    ...(ids.length === 0
      ? []
      : [{ what: 'the ids beside the name', why: 'several people may have the name; an erasure of an id erases it' }]),
    ...(correlated === 0
      ? []
      : [
          {
            what: `the correlation ids of ${correlated} entries, with the id or a name in them`,
            why: 'entries belong together by them',
          },
        ]),
    ...(isVacuumed
      ? []
      : [
          {
            what: 'old versions of rows in files of the database',
            why: 'they stay until the tables are rewritten (--vacuum)',
          },
        ]),
    { what: 'the write-ahead log, replicas and backups', why: 'they have what was there, until they expire' },
    {
      what: 'what subscriptions, exports and readers took away before',
      why: 'subscriptions receive the positions; those in "untold" must be notified by other means',
    },
  ];
}
