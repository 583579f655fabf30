import { ofCurrentWork } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Restriction } from '../../http/credentials.ts';
import { cutValues } from './cut-values.ts';
import { sealRef } from './entry-ref.ts';
import type { EntryRow, PageOfEntries } from './entry-store.ts';
import { hideValues } from './hide-values.ts';

/** How entries are shown. */
export interface Shown {
  /** Whether with a text that the entry can be asked for by; the rows then have identities. */
  readonly ref?: boolean;
  /** Longer values are cut; in bytes. */
  readonly valueLimit?: number | undefined;
  /** What the caller may see of the entries. */
  readonly restriction?: Pick<Restriction, 'hide' | 'actors'> | undefined;
}

/** The entries as they are to be shown: all of them, or each piece when it is read. */
export async function showEntries(
  sealer: Sealer,
  tenant: string,
  found: PageOfEntries,
  { ref = false, valueLimit, restriction }: Shown,
): Promise<PageOfEntries> {
  const show = async (rows: readonly EntryRow[]) => {
    const permitted = restriction === undefined ? rows : await permittedOf(rows, restriction);
    const referred = permitted.map(({ identity, ...row }) =>
      ref && identity !== undefined ? { ...row, ref: sealRef(sealer, tenant, { at: row.at, identity }) } : row,
    );
    return valueLimit === undefined ? referred : await withCutValues(referred, valueLimit);
  };
  if (!ref && valueLimit === undefined && restriction === undefined) return found;
  const entries = await show(found.entries);
  return found.pieces === undefined
    ? { ...found, entries }
    : { ...found, entries, pieces: ofCurrentWork(showPieces(found.pieces, show)) };
}

async function* showPieces(
  pieces: AsyncIterable<EntryRow[]>,
  show: (rows: readonly EntryRow[]) => Promise<EntryRow[]>,
): AsyncGenerator<EntryRow[]> {
  for await (const piece of pieces) yield await show(piece);
}

/** What the caller may see of entries. Values are masked before they are cut. */
async function permittedOf(
  rows: readonly EntryRow[],
  { hide, actors }: Pick<Restriction, 'hide' | 'actors'>,
): Promise<EntryRow[]> {
  const paths = await hideValues(
    rows.map((row) => row.paths),
    hide,
  );
  return rows.map(({ actor, ...row }, index) => ({
    ...row,
    paths: paths[index] ?? '{}',
    ...(actors && { actor }),
  }));
}

/** Only a text that is longer than the limit can have a value that is. */
async function withCutValues(rows: readonly EntryRow[], limit: number): Promise<EntryRow[]> {
  const long = rows.filter(({ paths }) => Buffer.byteLength(paths) > limit);
  const cut = await cutValues(
    long.map(({ paths }) => paths),
    limit,
  );
  const shown = new Map(long.map((row, index) => [row, cut[index]]));
  return rows.map((row) => {
    const changed = shown.get(row);
    return changed === undefined || changed.cut.length === 0 ? row : { ...row, paths: changed.paths, cut: changed.cut };
  });
}
