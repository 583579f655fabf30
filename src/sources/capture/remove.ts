import pg from 'pg';
import { type Source, withSource } from '../../postgres/source/source.ts';
import { CaptureError } from './capture-error.ts';
import { readPublication } from './publication.ts';
import { dropSlot } from './slot.ts';

/** Drops the slot and the publication at the source. Says which of them were there. */
export async function removeCapture(source: Source, slot: string): Promise<{ slot: boolean; publication: boolean }> {
  return await withSource(source, async (client) => {
    // The slot first: it makes the source keep its log.
    const hadSlot = await dropSlot(client, slot);
    const hadPublication = (await readPublication(client, slot)) !== 'missing';
    if (hadPublication) await dropPublication(client, slot);
    return { slot: hadSlot, publication: hadPublication };
  });
}

async function dropPublication(client: pg.Client, publication: string): Promise<void> {
  const statement = `drop publication ${pg.escapeIdentifier(publication)};`;
  try {
    await client.query(statement);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== '42501') throw error;
    throw new CaptureError(
      `the slot is dropped, and the publication belongs to another role. Let an owner run:\n  ${statement}`,
    );
  }
}
