import { ofCurrentWork } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { ShownActors } from '../../core/written-restriction.ts';
import type { Restriction } from '../../http/credentials.ts';
import { cutValues } from './cut-values.ts';
import { sealRef } from './entry-ref.ts';
import type { EntryRow, PageOfEntries } from './entry-store.ts';
import { hideValues } from './masks.ts';

interface ShowOptions {
  /** Whether entries get refs; their rows then have identities. */
  readonly ref?: boolean;
  /** Bytes; longer values are cut. */
  readonly valueLimit?: number | undefined;
  readonly restriction?: Shown | undefined;
}

type Shown = Pick<Restriction, 'hide' | 'actors' | 'correlations'>;

/** The entries as the caller may see them, each piece when it is read. Values are masked before they are cut. */
export async function showEntries(
  sealer: Sealer,
  tenant: string,
  found: PageOfEntries,
  { ref = false, valueLimit, restriction }: ShowOptions,
): Promise<PageOfEntries> {
  if (!ref && valueLimit === undefined && restriction === undefined) return found;
  const show = async (rows: readonly EntryRow[]) => {
    const permitted = restriction === undefined ? rows : await permittedOf(rows, restriction);
    const withRefs = permitted.map(({ identity, ...row }) =>
      ref && identity !== undefined ? { ...row, ref: sealRef(sealer, tenant, { at: row.at, identity }) } : row,
    );
    return valueLimit === undefined ? withRefs : await withCutValues(withRefs, valueLimit);
  };
  async function* showPieces(pieces: AsyncIterable<EntryRow[]>): AsyncGenerator<EntryRow[]> {
    for await (const piece of pieces) yield await show(piece);
  }
  const shown = { ...found, entries: await show(found.entries) };
  return found.pieces === undefined ? shown : { ...shown, pieces: ofCurrentWork(showPieces(found.pieces)) };
}

async function permittedOf(rows: readonly EntryRow[], { hide, actors, correlations }: Shown): Promise<EntryRow[]> {
  const texts = rows.map((row) => row.paths);
  const paths = await hideValues(texts, hide);
  return rows.map((row, index) => {
    const { correlationId, ...shown } = withoutParts(withShownActors(row, actors), unseenParts(actors));
    const sealed = correlationId == null ? undefined : correlations?.seal(correlationId);
    return { ...shown, ...(sealed !== undefined && { correlationId: sealed }), paths: paths[index] ?? '{}' };
  });
}

/** Of `erased`: the parts that a restricted reader does not see. */
export function unseenParts(actors: ShownActors): readonly string[] {
  return ['context', 'recordedBy', ...unseenPartsOfActors(actors)];
}

function unseenPartsOfActors(actors: ShownActors): string[] {
  if (actors === 'all') return [];
  return [...(actors ? [] : ['actor']), 'actorId', 'onBehalfOf', 'onBehalfOf.name'];
}

function withoutParts(row: EntryRow, unseen: readonly string[]): EntryRow {
  if (row.erased == null) return row;
  const parts: readonly string[] = JSON.parse(row.erased);
  const seen = parts.filter((part) => !unseen.includes(part));
  return { ...row, erased: seen.length === 0 ? null : JSON.stringify(seen) };
}

/** An entry with what the reader sees of who made it. */
export function withShownActors(row: EntryRow, actors: ShownActors): EntryRow {
  if (actors === 'all') return row;
  const { actor, actorId: _id, onBehalfOfName: _name, onBehalfOfId: _behalf, correlationId: _group, ...rest } = row;
  const shown = withoutParts(rest, unseenPartsOfActors(actors));
  return actors && actor !== undefined ? { ...shown, actor } : shown;
}

/** Only a text that is longer than the limit can have a value that is. */
async function withCutValues(rows: readonly EntryRow[], limit: number): Promise<EntryRow[]> {
  const long = rows.filter(({ paths }) => Buffer.byteLength(paths) > limit);
  const texts = long.map(({ paths }) => paths);
  const cut = await cutValues(texts, limit);
  const cutOf = new Map(long.map((row, index) => [row, cut[index]]));
  return rows.map((row) => {
    const found = cutOf.get(row);
    return found === undefined || found.cut.length === 0 ? row : { ...row, paths: found.paths, cut: found.cut };
  });
}
