import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { commitmentOf, hashField } from '../../proof/log/commitment.ts';
import { type CommittedEntry, countOfFields, type FieldLabel, fieldsOf, labelAt } from '../../proof/log/fields.ts';
import { forgetSeeds, leavesOf, readLeaves, readTreeSize } from '../../proof/log/leaf-store.ts';
import { type KnownSalts, saltCover, saltsOf } from '../../proof/log/salts.ts';
import { hashBytes } from '../../proof/log/tiles.ts';

/** An entry with erased fields. */
export interface RedactedEntry {
  readonly position: number;
  /** Versions of the entry that may have been sealed, the likeliest first. */
  readonly sealed: readonly CommittedEntry[];
  readonly after: CommittedEntry;
  /** Fields to hide in addition to those whose text changed. */
  readonly hidden: ReadonlySet<FieldLabel>;
}

interface Redaction {
  readonly hidden: readonly number[];
  readonly hashes: Buffer;
  readonly cover: Buffer;
}

/**
 * Reduces the proof of sealed entries to the hashes of erased fields and the salts of the others, and destroys the
 * seeds: the rest still verifies, and guesses of the erased texts cannot be tested. The caller has the lock of the
 * proof.
 */
export async function redactProof(
  transaction: DatabaseTransaction,
  tenant: string,
  entries: readonly RedactedEntry[],
): Promise<void> {
  const size = await readTreeSize(transaction, tenant);
  const sealed = entries.filter(({ position }) => position <= size);
  for (const entry of sealed) {
    const { position } = entry;
    const [leaf] = leavesOf(await readLeaves(transaction, tenant, position, position));
    if (leaf?.kind !== 'entry') continue;
    const known = await readRedaction(transaction, tenant, position);
    const made = redactionOf(entry, leaf, known);
    if (made === undefined) continue;
    await sql`
      insert into proof_redaction (tenant, position, hidden, hashes, cover)
        values (${tenant}, ${position}, ${[...made.hidden]}::integer[], ${made.hashes}, ${made.cover})
        on conflict (tenant, position)
          do update set hidden = excluded.hidden, hashes = excluded.hashes, cover = excluded.cover`.execute(
      transaction,
    );
  }
  const positions = sealed.map(({ position }) => position);
  if (positions.length > 0) await forgetSeeds(transaction, tenant, positions);
}

function redactionOf(
  { sealed, after, hidden }: RedactedEntry,
  { commitment, seed }: { commitment: Buffer; seed: Buffer | undefined },
  before: Redaction | undefined,
): Redaction | undefined {
  const fields = fieldsOf(after);
  const count = countOfFields(fields);
  const shownBefore = Array.from({ length: count }, (_field, index) => before?.hidden.includes(index) !== true);
  const known: KnownSalts | undefined =
    before !== undefined ? { cover: nodesOf(before.cover), shown: shownBefore } : seed && { seed };
  if (known === undefined) return undefined;
  const salts = saltsOf(known, count);
  const hashesBefore = new Map(before?.hidden.map((field, place) => [field, nodesOf(before.hashes)[place]]));
  const tried = sealed.map((entry) => {
    const { texts } = fieldsOf(entry);
    const hashes = salts.map(
      (salt, index) =>
        hashesBefore.get(index) ??
        hashField(labelAt(fields, index), texts[index] ?? null, salt ?? Buffer.alloc(hashBytes)),
    );
    return { texts, hashes };
  });
  // If none fits, the entry was altered before, and its proof keeps showing that.
  const found = tried.find(({ hashes }) => commitmentOf(fields, hashes).equals(commitment)) ?? tried[0];
  if (found === undefined) return undefined;
  const isHidden = shownBefore.map(
    (shown, index) => !shown || found.texts[index] !== fields.texts[index] || hidden.has(labelAt(fields, index)),
  );
  const places = [...isHidden.keys()].filter((index) => isHidden[index]);
  const isShown = isHidden.map((isHere) => !isHere);
  return {
    hidden: places,
    hashes: Buffer.concat(places.map((index) => found.hashes[index] ?? Buffer.alloc(hashBytes))),
    cover: Buffer.concat(saltCover(known, count, isShown)),
  };
}

async function readRedaction(
  transaction: DatabaseTransaction,
  tenant: string,
  position: number,
): Promise<Redaction | undefined> {
  const { rows } = await sql<Redaction>`
    select hidden, hashes, cover from proof_redaction where tenant = ${tenant} and position = ${position}`.execute(
    transaction,
  );
  return rows[0];
}

function nodesOf(joined: Buffer): Buffer[] {
  return Array.from({ length: joined.length / hashBytes }, (_node, index) =>
    joined.subarray(index * hashBytes, (index + 1) * hashBytes),
  );
}
